<?php
// A feed as php-redis reads it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM, and for a
// group.
[, $host, $port, $feed] = $argv;
$client = new Redis();
$client->connect($host, (int)$port);

function show($call, $found) {
    echo json_encode(['call' => $call, 'found' => $found]), "\n";
}

function entries($map) {
    return array_map(fn($id) => [(string)$id, $map[$id]], array_keys($map));
}

$last = '0';
$entries = [];
for (;;) {
    $reply = $client->xRead([$feed => $last], 3, 300);
    if (!$reply) {
        break;
    }
    $entries = array_merge($entries, entries($reply[$feed]));
    $last = end($entries)[0];
}
show('xread', $entries);
show('xrange', entries($client->xRange($feed, '-', '+')));
show('xrevrange', entries($client->xRevRange($feed, '+', '-', 2)));
show('xlen', $client->xLen($feed));
$info = $client->xInfo('STREAM', $feed);
show('xinfo', [$info['length'], $info['last-generated-id'], array_keys($info['last-entry'])[0]]);
$client->xGroup('CREATE', $feed, 'php', '0');
$got = [];
while ($reply = $client->xReadGroup('php', 'ann', [$feed => '>'], 3, 100)) {
    $got = array_merge($got, entries($reply[$feed]));
}
show('xreadgroup', $got);
$ids = array_map(fn($one) => $one[0], $got);
show('xack', $client->xAck($feed, 'php', array_slice($ids, 0, 2)));
$range = $client->xPending($feed, 'php', '-', '+', 100);
show('xpending', [$client->xPending($feed, 'php')[0], array_map(fn($one) => $one[0], $range)]);
show('xclaim', array_map('strval', array_keys($client->xClaim($feed, 'php', 'bob', 0, array_slice($ids, 2, 2), []))));
$claimed = $client->rawCommand('XAUTOCLAIM', $feed, 'php', 'eve', 0, '0-0', 'COUNT', 3)[1];
show('xautoclaim', array_map(fn($one) => $one[0], $claimed));
show('xhistory', array_map('strval', array_keys($client->xReadGroup('php', 'eve', [$feed => '0'])[$feed])));
$names = array_map(fn($one) => $one['name'], $client->xInfo('CONSUMERS', $feed, 'php'));
sort($names);
show('consumers', $names);
show('lag', array_map(fn($one) => $one['lag'], $client->xInfo('GROUPS', $feed)));
$client->xGroup('DESTROY', $feed, 'php');
