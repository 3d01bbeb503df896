# The script of test_clients.py for libredis-perl: script_perl.pl HOST PORT TABLE.
use strict;
use warnings;
use Redis;

$| = 1;
sub check {
  my ($condition, $what) = @_;
  return if $condition;
  print "not ok: $what\n";
  exit 1;
}

my ($host, $port, $table) = @ARGV;
my $one = Redis->new(server => "$host:$port", reconnect => 5, every => 1000);
my $other = Redis->new(server => "$host:$port");
check($one->ping eq 'PONG', 'ping');
check($one->client_setname('script') eq 'OK', 'name');
print "ok connect\n";

check($one->table('CREATE', $table, 'FAMILY', 'f', 'FAMILY', 'n', 'TYPE', 'i64') eq 'OK', 'create');
check($one->exists($table) == 1, 'exists');
check($one->type($table) eq 'table', 'type');
check($one->rename($table, $table . '2') && $one->rename($table . '2', $table), 'rename');
print "ok generic\n";

check($one->cput($table, 'r', 'f:a', '1', 'n:x', '42') eq 'OK', 'cput');
check($one->cget($table, 'r', 'f:a') eq '1', 'cget');
check($one->cget($table, 'r', 'n:x') == 42, 'cget number');
check(!defined $one->cget($table, 'r', 'f:none'), 'cget nothing');
check($one->cincrby($table, 'r', 'n:x', 1) == 43, 'cincrby');
check(join(' ', $one->crow($table, 'r')) eq 'f:a 1 n:x 43', 'crow');
my ($cursor, $rows) = $one->cscan($table, 0);
check($cursor eq '0' && $rows->[0][0] eq 'r' && $rows->[0][1][3] == 43, 'cscan');
check($one->cdel($table, 'r') == 3, 'cdel');
print "ok cells\n";

eval { $one->cget('nosuchtable', 'r', 'f:a') };
check($@ =~ /NOTABLE /, 'error');
print "ok errors\n";

my $oks = 0;
for my $i (0 .. 9_999) {
  $one->cput($table, "p$i", 'f:a', $i, sub { $oks++ if $_[0] eq 'OK' });
}
$one->wait_all_responses;
check($oks == 10_000, 'pipeline');
check($one->ccount($table, 'PREFIX', 'p') == 10_000, 'ccount');
print "ok pipeline\n";

$one->multi;
$one->cput($table, 'm', 'f:a', '1');
$one->cincrby($table, 'm', 'n:x', 5);
my @done = $one->exec;
check(@done == 2 && $done[1] == 5, 'multi');
$one->watch($table);
$other->cput($table, 'm', 'f:a', '2');
$one->multi;
$one->cput($table, 'm', 'f:a', '3');
my $conflict = $one->exec;
check(!defined $conflict, 'conflict');
check($one->cget($table, 'm', 'f:a') eq '2', 'untouched');
print "ok transactions\n";

my $large = 'x' x 10_000_000;
check($one->cput($table, 'l', 'f:a', $large) eq 'OK', 'large');
check($one->cget($table, 'l', 'f:a') eq $large, 'large back');
print "ok large\n";

my $binary = join '', map { chr } 0 .. 255;
check($one->cput($table, $binary, "f:$binary", $binary) eq 'OK', 'binary');
check($one->cget($table, $binary, "f:$binary") eq $binary, 'binary back');
print "ok binary\n";

my $id = $one->client('ID');
check($other->client('KILL', 'ID', $id) == 1, 'kill');
check($one->cget($table, 'm', 'f:a') eq '2', 'after reconnect');
print "ok reconnect\n";

# The client has no thread that could unblock it: the time ends.
check($one->wait(1, 100) == 0, 'wait');
print "ok blocking\n";

if (my $auth = $ENV{CELLAR_AUTH_PORT}) {
  eval { Redis->new(server => "$host:$auth")->ping };
  check($@ =~ /NOAUTH/, 'no password');
  eval { Redis->new(server => "$host:$auth", password => 'wrong')->ping };
  check($@, 'wrong password');
  check(Redis->new(server => "$host:$auth", password => 'secret')->ping eq 'PONG', 'auth');
  print "ok auth\n";
}

my $heard = '';
$one->subscribe("$table-news", sub { $heard = $_[0] });
check($other->publish("$table-news", 'hello') == 1, 'publish');
$one->wait_for_messages(30) until $heard;
check($heard eq 'hello', 'message');
print "ok pubsub\n";
