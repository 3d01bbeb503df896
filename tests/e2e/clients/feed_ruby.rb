# A feed as ruby-redis reads it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM, and for a
# group.
require 'json'
require 'redis'

host, port, feed = ARGV
client = Redis.new(host: host, port: port.to_i)

def show(call, found)
  puts JSON.generate('call' => call, 'found' => found)
end

last = '0'
entries = []
loop do
  reply = client.xread(feed, last, count: 3, block: 300)
  break if reply.empty?

  entries += reply[feed]
  last = entries[-1][0]
end
show('xread', entries)
show('xrange', client.xrange(feed, '-', '+'))
show('xrevrange', client.xrevrange(feed, '+', '-', count: 2))
show('xlen', client.xlen(feed))
info = client.xinfo(:stream, feed)
show('xinfo', [info['length'], info['last-generated-id'], info['last-entry'][0]])
client.xgroup(:create, feed, 'rb', '0')
got = []
loop do
  reply = client.xreadgroup('rb', 'ann', feed, '>', count: 3, block: 100)
  break if reply.empty?

  got += reply[feed]
end
show('xreadgroup', got)
ids = got.map(&:first)
show('xack', client.xack(feed, 'rb', *ids[0, 2]))
range = client.xpending(feed, 'rb', '-', '+', 100)
show('xpending', [client.xpending(feed, 'rb')['size'], range.map { |one| one['entry_id'] }])
show('xclaim', client.xclaim(feed, 'rb', 'bob', 0, *ids[2, 2]).map(&:first))
show('xautoclaim', client.xautoclaim(feed, 'rb', 'eve', 0, '0-0', count: 3)['entries'].map(&:first))
show('xhistory', client.xreadgroup('rb', 'eve', feed, '0')[feed].map(&:first))
show('consumers', client.xinfo(:consumers, feed, 'rb').map { |one| one['name'] }.sort)
show('lag', client.xinfo(:groups, feed).map { |one| one['lag'] })
client.xgroup(:destroy, feed, 'rb')
