# A feed as ruby-redis reads it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM.
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
