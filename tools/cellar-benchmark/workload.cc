// See workload.h. The built-in workloads are a table of texts; parsing makes Workloads of them.
#include "workload.h"

#include <charconv>
#include <span>

namespace cellar::benchmark {
namespace {

// One operation as text: steps are separated by " ; ", commands of one step by " & ", and a step
// that begins with "x50 " is sent for 50 successive keys.
struct OperationText {
  std::string_view name;
  double weight;
  bool inserts;
  std::string_view cellar;
  std::string_view redis;
};

struct WorkloadText {
  std::string_view name;
  std::string_view summary;
  KeyDistributionKind keys;
  std::string_view cellar_setup;
  std::string_view cellar_load;
  std::string_view redis_load;
  std::span<const OperationText> operations;
};

constexpr std::string_view kYcsbSetup{"TABLE CREATE usertable FAMILY f VERSIONS 1"};
constexpr std::string_view kYcsbLoad{
    "CPUT usertable user__key__ f:field0 __data:100__ f:field1 __data:100__ "
    "f:field2 __data:100__ f:field3 __data:100__ f:field4 __data:100__ f:field5 __data:100__ "
    "f:field6 __data:100__ f:field7 __data:100__ f:field8 __data:100__ f:field9 __data:100__"};
constexpr std::string_view kYcsbRedisLoad{
    "HSET user__key__ field0 __data:100__ field1 __data:100__ field2 __data:100__ "
    "field3 __data:100__ field4 __data:100__ field5 __data:100__ field6 __data:100__ "
    "field7 __data:100__ field8 __data:100__ field9 __data:100__ & ZADD index 0 user__key__"};
constexpr std::string_view kYcsbUpdate{
    "CPUT usertable user__key__ f:field__rand:0:9__ __data:100__"};
constexpr std::string_view kYcsbRedisUpdate{"HSET user__key__ field__rand:0:9__ __data:100__"};
constexpr std::string_view kYcsbRead{"CROW usertable user__key__"};
constexpr std::string_view kYcsbRedisRead{"HGETALL user__key__"};

constexpr OperationText kYcsbA[] = {{"read", 50, false, kYcsbRead, kYcsbRedisRead},
                                    {"update", 50, false, kYcsbUpdate, kYcsbRedisUpdate}};
constexpr OperationText kYcsbB[] = {{"read", 95, false, kYcsbRead, kYcsbRedisRead},
                                    {"update", 5, false, kYcsbUpdate, kYcsbRedisUpdate}};
constexpr OperationText kYcsbC[] = {{"read", 100, false, kYcsbRead, kYcsbRedisRead}};
constexpr OperationText kYcsbD[] = {{"read", 95, false, kYcsbRead, kYcsbRedisRead},
                                    {"insert", 5, true, kYcsbLoad, kYcsbRedisLoad}};
constexpr OperationText kYcsbE[] = {
    {"scan", 95, false, "CSCAN usertable 0 RANGE [user__key__ + COUNT 50",
     "ZRANGEBYLEX index [user__key__ + LIMIT 0 50 ; x50 HGETALL user__key__"},
    {"insert", 5, true, kYcsbLoad, kYcsbRedisLoad}};
constexpr OperationText kYcsbF[] = {
    {"read", 50, false, kYcsbRead, kYcsbRedisRead},
    {"read-modify-write", 50, false,
     "CROW usertable user__key__ ; CPUT usertable user__key__ f:field__rand:0:9__ __data:100__",
     "HGETALL user__key__ ; HSET user__key__ field__rand:0:9__ __data:100__"}};

// A sensor appends a reading; a dashboard reads the last ten seconds of one sensor.
constexpr OperationText kTimeSeries[] = {
    {"append", 90, false, "CPUT series sensor#__key__ m:reading __data:8__",
     "ZADD sensor#__key__ __now__ __now__:__data:8__"},
    {"window", 10, false, "CROW series sensor#__key__ TIME __now-10__ +inf VERSIONS ALL",
     "ZRANGEBYSCORE sensor#__key__ __now-10__ +inf"}};

// Bigtable's example: pages by reversed URL, with their contents and the anchors that lead there.
constexpr OperationText kWebtable[] = {
    {"page", 60, false, "CGET webtable com.site__key__/index contents:html",
     "HGET com.site__key__/index contents:html"},
    {"anchors", 20, false, "CROW webtable com.site__key__/index COLUMNS 1 anchor",
     "HGETALL anchors/com.site__key__/index"},
    {"crawl", 15, false,
     "CPUT webtable com.site__key__/index contents:html __data:1000__ meta:status 200",
     "HSET com.site__key__/index contents:html __data:1000__ meta:status 200"},
    {"link", 5, false,
     "CPUT webtable com.site__key__/index anchor:org.site__rand:0:99__ __data:20__",
     "HSET anchors/com.site__key__/index anchor:org.site__rand:0:99__ __data:20__"}};

constexpr WorkloadText kWorkloads[] = {
    {"ycsb-a", "50 % read, 50 % update", KeyDistributionKind::kZipf, kYcsbSetup, kYcsbLoad,
     kYcsbRedisLoad, kYcsbA},
    {"ycsb-b", "95 % read, 5 % update", KeyDistributionKind::kZipf, kYcsbSetup, kYcsbLoad,
     kYcsbRedisLoad, kYcsbB},
    {"ycsb-c", "read only", KeyDistributionKind::kZipf, kYcsbSetup, kYcsbLoad, kYcsbRedisLoad,
     kYcsbC},
    {"ycsb-d", "95 % read of what was inserted last, 5 % insert", KeyDistributionKind::kLatest,
     kYcsbSetup, kYcsbLoad, kYcsbRedisLoad, kYcsbD},
    {"ycsb-e", "95 % scan of 50 records, 5 % insert", KeyDistributionKind::kZipf, kYcsbSetup,
     kYcsbLoad, kYcsbRedisLoad, kYcsbE},
    {"ycsb-f", "50 % read, 50 % read-modify-write", KeyDistributionKind::kZipf, kYcsbSetup,
     kYcsbLoad, kYcsbRedisLoad, kYcsbF},
    {"timeseries", "90 % append of a reading, 10 % scan of a sensor's last 10 s",
     KeyDistributionKind::kUniform, "TABLE CREATE series FAMILY m TTL 1h",
     "CPUT series sensor#__key__ m:reading __data:8__",
     "ZADD sensor#__key__ __now__ __now__:__data:8__", kTimeSeries},
    {"webtable", "pages and anchors: 60 % page, 20 % anchors, 15 % crawl, 5 % new link",
     KeyDistributionKind::kZipf,
     "TABLE CREATE webtable FAMILY contents VERSIONS 3 FAMILY anchor VERSIONS 1 FAMILY meta "
     "VERSIONS 1",
     "CPUT webtable com.site__key__/index contents:html __data:1000__ meta:status 200 "
     "anchor:org.site__rand:0:99__ __data:20__",
     "HSET com.site__key__/index contents:html __data:1000__ meta:status 200 & "
     "HSET anchors/com.site__key__/index anchor:org.site__rand:0:99__ __data:20__",
     kWebtable},
};

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == text.npos) return parts;
    text.remove_prefix(at + separator.size());
  }
}

Result<std::vector<CommandTemplate>> ParseCommands(std::string_view text,
                                                   const TemplateOptions& options) {
  std::vector<CommandTemplate> commands;
  for (const std::string_view part : SplitAt(text, " & ")) {
    ASSIGN_OR_RETURN(CommandTemplate command, CommandTemplate::Parse(part, options));
    commands.push_back(std::move(command));
  }
  return commands;
}

Result<std::vector<Step>> ParseSteps(std::string_view text, const TemplateOptions& options) {
  std::vector<Step> steps;
  for (std::string_view part : SplitAt(text, " ; ")) {
    Step step;
    if (part.starts_with("x50 ")) {
      step.keys = 50;
      part.remove_prefix(4);
    }
    ASSIGN_OR_RETURN(step.commands, ParseCommands(part, options));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

std::string WorkloadHelp() {
  std::string help;
  for (const WorkloadText& text : kWorkloads) {
    help += "  " + std::string(text.name);
    help.append(12 - std::min<size_t>(12, text.name.size()), ' ');
    help += std::string(text.summary) + "\n";
  }
  return help;
}

Result<Workload> BuiltInWorkload(std::string_view name, Dialect dialect,
                                 const TemplateOptions& options) {
  const bool cellar = dialect == Dialect::kCellar;
  for (const WorkloadText& text : kWorkloads) {
    if (text.name != name) continue;
    Workload workload;
    workload.name = name;
    workload.keys = text.keys;
    if (cellar) workload.setup.emplace_back(text.cellar_setup);
    ASSIGN_OR_RETURN(workload.load,
                     ParseCommands(cellar ? text.cellar_load : text.redis_load, options));
    for (const OperationText& operation_text : text.operations) {
      Operation operation;
      operation.name = operation_text.name;
      operation.weight = operation_text.weight;
      operation.inserts = operation_text.inserts;
      ASSIGN_OR_RETURN(operation.steps,
                       ParseSteps(cellar ? operation_text.cellar : operation_text.redis, options));
      workload.operations.push_back(std::move(operation));
    }
    return workload;
  }
  return Status::Error(ErrorCode::kErr, "no workload " + std::string(name));
}

Result<Workload> CustomWorkload(const std::vector<std::string>& commands,
                                const TemplateOptions& options) {
  Workload workload;
  workload.name = "custom";
  for (std::string_view text : commands) {
    Operation operation;
    const size_t colon = text.find(':');
    double weight = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (error == std::errc() && colon != text.npos && end == text.data() + colon && weight > 0) {
      operation.weight = weight;
      text.remove_prefix(colon + 1);
    }
    ASSIGN_OR_RETURN(operation.steps, ParseSteps(text, options));
    ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitWords(text));
    operation.name = words.front();
    workload.operations.push_back(std::move(operation));
  }
  return workload;
}

}  // namespace cellar::benchmark
