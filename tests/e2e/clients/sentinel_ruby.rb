# As sentinel_node.js, with ruby-redis in its default settings: sentinel_ruby.rb ruby SENTINEL_PORT,... NAME TABLE.
require 'redis'

library, ports, name, table = ARGV
sentinels = ports.split(',').map { |port| { host: '127.0.0.1', port: port.to_i } }
client = Redis.new(url: "redis://#{name}", sentinels: sentinels, role: :master)
$stdout.sync = true
Thread.new do
  nil while $stdin.gets
  exit! 0
end
number = 0
loop do
  begin
    client.call(['CPUT', table, "#{library}-#{number}", 'f:a', number.to_s])
    puts "acknowledged #{number}"
    number += 1
  rescue Redis::BaseError => error
    puts "error #{error.message.lines.first}"
  end
  sleep 0.005
end
