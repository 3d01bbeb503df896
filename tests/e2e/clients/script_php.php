<?php
// The script of test_clients.py for php-redis: script_php.php HOST PORT TABLE.
function check($condition, $what) {
  if (!$condition) {
    echo "not ok: $what\n";
    exit(1);
  }
}
ini_set('memory_limit', '512M');
[, $host, $port, $table] = $argv;
$one = new Redis();
$one->connect($host, (int)$port);
$other = new Redis();
$other->connect($host, (int)$port);
check($one->ping() === true, 'ping');
check($one->client('setname', 'script') === true, 'name');
echo "ok connect\n";

check($one->rawCommand('TABLE', 'CREATE', $table, 'FAMILY', 'f', 'FAMILY', 'n', 'TYPE', 'i64') === true, 'create');
check($one->exists($table) === 1, 'exists');
check($one->rawCommand('TYPE', $table) !== false, 'type');
check($one->rename($table, $table . '2') && $one->rename($table . '2', $table), 'rename');
echo "ok generic\n";

check($one->rawCommand('CPUT', $table, 'r', 'f:a', '1', 'n:x', '42') === true, 'cput');
check($one->rawCommand('CGET', $table, 'r', 'f:a') === '1', 'cget');
check($one->rawCommand('CGET', $table, 'r', 'n:x') === 42, 'cget number');
check($one->rawCommand('CGET', $table, 'r', 'f:none') === false, 'cget nothing');
check($one->rawCommand('CINCRBY', $table, 'r', 'n:x', '1') === 43, 'cincrby');
check($one->rawCommand('CROW', $table, 'r') === ['f:a', '1', 'n:x', 43], 'crow');
check($one->rawCommand('CSCAN', $table, '0') === ['0', [['r', ['f:a', '1', 'n:x', 43]]]], 'cscan');
check($one->rawCommand('CDEL', $table, 'r') === 3, 'cdel');
echo "ok cells\n";

try {
  $one->rawCommand('CGET', 'nosuchtable', 'r', 'f:a');
  check(false, 'error');
} catch (RedisException $e) {
  check(str_starts_with($e->getMessage(), 'NOTABLE '), 'error text');
}
echo "ok errors\n";

$pipe = $one->multi(Redis::PIPELINE);
for ($i = 0; $i < 10000; $i++) {
  $pipe->rawCommand('CPUT', $table, "p$i", 'f:a', (string)$i);
}
check($pipe->exec() === array_fill(0, 10000, true), 'pipeline');
check($one->rawCommand('CCOUNT', $table, 'PREFIX', 'p') === 10000, 'ccount');
echo "ok pipeline\n";

$transaction = $one->multi();
$transaction->rawCommand('CPUT', $table, 'm', 'f:a', '1');
$transaction->rawCommand('CINCRBY', $table, 'm', 'n:x', '5');
check($transaction->exec() === [true, 5], 'multi');
$one->watch($table);
$other->rawCommand('CPUT', $table, 'm', 'f:a', '2');
$transaction = $one->multi();
$transaction->rawCommand('CPUT', $table, 'm', 'f:a', '3');
check($transaction->exec() === false, 'conflict');
check($one->rawCommand('CGET', $table, 'm', 'f:a') === '2', 'untouched');
echo "ok transactions\n";

$large = str_repeat('x', 10000000);
check($one->rawCommand('CPUT', $table, 'l', 'f:a', $large) === true, 'large');
check($one->rawCommand('CGET', $table, 'l', 'f:a') === $large, 'large back');
echo "ok large\n";

$binary = implode('', array_map('chr', range(0, 255)));
check($one->rawCommand('CPUT', $table, $binary, 'f:' . $binary, $binary) === true, 'binary');
check($one->rawCommand('CGET', $table, $binary, 'f:' . $binary) === $binary, 'binary back');
echo "ok binary\n";

$id = $one->client('id');
check($other->rawCommand('CLIENT', 'KILL', 'ID', (string)$id) === 1, 'kill');
check($one->rawCommand('CGET', $table, 'm', 'f:a') === '2', 'after reconnect');
echo "ok reconnect\n";

// The client has no thread that could unblock it: the time ends.
check($one->wait(1, 100) === 0, 'wait');
echo "ok blocking\n";

if ($auth = getenv('CELLAR_AUTH_PORT')) {
  foreach ([null, 'wrong', ['default', 'wrong'], 'secret', ['default', 'secret']] as $password) {
    $guarded = new Redis();
    $guarded->connect($host, (int)$auth);
    $good = $password === 'secret' || $password === ['default', 'secret'];
    try {
      if ($password !== null) $guarded->auth($password);
      $let_in = $guarded->ping() === true;
    } catch (RedisException $e) {
      check(preg_match('/NOAUTH|WRONGPASS/', $e->getMessage()), $e->getMessage());
      $let_in = false;
    }
    check($let_in === $good, 'auth');
  }
  echo "ok auth\n";
}

$heard = null;
$one->setOption(Redis::OPT_READ_TIMEOUT, 30);
try {
  // The message is published by a process of its own, for subscribe() does not come back.
  $publisher = start_publisher($host, $port, $table);
  $one->subscribe(["$table-news"], function ($redis, $channel, $message) use (&$heard) {
    $heard = $message;
    $redis->close();
  });
} catch (RedisException $e) {
  // The callback closes the connection to leave subscribe().
}
check($heard === 'hello', 'message');
echo "ok pubsub\n";

function start_publisher($host, $port, $table) {
  $code = '$r = new Redis(); $r->connect($argv[1], (int)$argv[2]);'
    . 'while ($r->publish($argv[3] . "-news", "hello") < 1) usleep(20000);';
  return proc_open([PHP_BINARY, '-r', $code, '--', $host, $port, $table], [], $pipes);
}
