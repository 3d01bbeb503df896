# The script of test_clients.py for ruby-redis: script_ruby.rb HOST PORT TABLE.
require 'redis'

def check(condition, what)
  abort "not ok: #{what}" unless condition
end

host, port, table = ARGV
one = Redis.new(host: host, port: port.to_i)
other = Redis.new(host: host, port: port.to_i)
check(one.ping == 'PONG', 'ping')
check(one.call('CLIENT', 'SETNAME', 'script') == 'OK', 'name')
puts 'ok connect'

check(one.call('TABLE', 'CREATE', table, 'FAMILY', 'f', 'FAMILY', 'n', 'TYPE', 'i64') == 'OK', 'create')
check(one.exists?(table), 'exists')
check(one.type(table) == 'table', 'type')
check(one.scan_each.to_a.include?(table), 'scan')
check(one.rename(table, "#{table}2") == 'OK' && one.rename("#{table}2", table) == 'OK', 'rename')
puts 'ok generic'

check(one.call('CPUT', table, 'r', 'f:a', '1', 'n:x', '42') == 'OK', 'cput')
check(one.call('CGET', table, 'r', 'f:a') == '1', 'cget')
check(one.call('CGET', table, 'r', 'n:x') == 42, 'cget number')
check(one.call('CGET', table, 'r', 'f:none').nil?, 'cget nothing')
check(one.call('CINCRBY', table, 'r', 'n:x', '1') == 43, 'cincrby')
check(one.call('CROW', table, 'r') == ['f:a', '1', 'n:x', 43], 'crow')
check(one.call('CSCAN', table, '0') == ['0', [['r', ['f:a', '1', 'n:x', 43]]]], 'cscan')
check(one.call('CDEL', table, 'r') == 3, 'cdel')
puts 'ok cells'

begin
  one.call('CGET', 'nosuchtable', 'r', 'f:a')
  abort 'not ok: no error'
rescue Redis::CommandError => e
  check(e.message.start_with?('NOTABLE '), e.message)
end
puts 'ok errors'

replies = one.pipelined do |pipe|
  10_000.times { |i| pipe.call('CPUT', table, "p#{i}", 'f:a', i.to_s) }
end
check(replies == ['OK'] * 10_000, 'pipeline')
check(one.call('CCOUNT', table, 'PREFIX', 'p') == 10_000, 'ccount')
puts 'ok pipeline'

replies = one.multi do |transaction|
  transaction.call('CPUT', table, 'm', 'f:a', '1')
  transaction.call('CINCRBY', table, 'm', 'n:x', '5')
end
check(replies == ['OK', 5], 'multi')
one.watch(table) do
  other.call('CPUT', table, 'm', 'f:a', '2')
  check(one.multi { |t| t.call('CPUT', table, 'm', 'f:a', '3') }.nil?, 'conflict')
end
check(one.call('CGET', table, 'm', 'f:a') == '2', 'untouched')
puts 'ok transactions'

large = 'x' * 10_000_000
check(one.call('CPUT', table, 'l', 'f:a', large) == 'OK', 'large')
check(one.call('CGET', table, 'l', 'f:a') == large, 'large back')
puts 'ok large'

binary = (0..255).to_a.pack('C*')
column = 'f:'.b + binary
check(one.call('CPUT', table, binary, column, binary) == 'OK', 'binary')
check(one.call('CGET', table, binary, column).b == binary, 'binary back')
puts 'ok binary'

check(other.call('CLIENT', 'KILL', 'ID', one.call('CLIENT', 'ID').to_s) == 1, 'kill')
check(one.call('CGET', table, 'm', 'f:a') == '2', 'after reconnect')
puts 'ok reconnect'

number = one.call('CLIENT', 'ID').to_s
waiting = Thread.new { one.call('WAIT', '1', '0') }
sleep 0.01 while other.call('CLIENT', 'UNBLOCK', number) != 1
check(waiting.value.zero?, 'unblock')
puts 'ok blocking'

if (port = ENV['CELLAR_AUTH_PORT'])
  [{}, { password: 'wrong' }].each do |options|
    begin
      Redis.new(host: host, port: port.to_i, **options).ping
      abort 'not ok: let in'
    rescue Redis::BaseError => e
      check(e.message =~ /NOAUTH|WRONGPASS/, e.message)
    end
  end
  [{ password: 'secret' }, { username: 'default', password: 'secret' }].each do |options|
    check(Redis.new(host: host, port: port.to_i, **options).ping == 'PONG', 'auth')
  end
  puts 'ok auth'
end

heard = nil
one.subscribe_with_timeout(30, "#{table}-news") do |on|
  on.subscribe { other.publish("#{table}-news", 'hello') }
  on.message do |_, message|
    heard = message
    one.unsubscribe
  end
end
check(heard == 'hello', 'message')
puts 'ok pubsub'
