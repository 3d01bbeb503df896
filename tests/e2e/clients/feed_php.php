<?php
// A feed as php-redis reads it: one line of JSON for each of XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM.
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
