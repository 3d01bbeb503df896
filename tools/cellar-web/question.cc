// See question.h.
#include "cellar-web/question.h"

#include <limits>
#include <utility>

#include "cellar-web/row_questions.h"

namespace cellar::web {
namespace {

constexpr NumberBounds kHours{.usual = 1, .min = 1, .max = 24};
constexpr NumberBounds kMicros{.usual = 0, .min = 0, .max = std::numeric_limits<int64_t>::max()};
constexpr NumberBounds kMinutes{.usual = 0, .min = 0, .max = 1440};
constexpr NumberBounds kTablets{.usual = 200, .min = 1, .max = 1000};
constexpr NumberBounds kRanges{.usual = 64, .min = 1, .max = 1000};

std::vector<std::string> Heat(ParameterReader* reader) {
  std::vector<std::string> words{"HEAT", reader->Text("table"), "RANGES",
                                 std::to_string(reader->Number("ranges", kRanges))};
  for (const auto& [name, option] : {std::pair("from", "FROM"), std::pair("to", "TO")}) {
    const uint64_t micros = reader->Number(name, kMicros);
    if (micros > 0) words.insert(words.end(), {option, std::to_string(micros)});
  }
  if (const uint64_t minutes = reader->Number("minutes", kMinutes); minutes > 0) {
    words.insert(words.end(), {"STEP", std::to_string(minutes) + "m"});
  }
  return words;
}

std::vector<std::string> Tablets(ParameterReader* reader) {
  std::vector<std::string> words{"TABLET", "LIST"};
  if (const auto table = reader->Optional("table"); table) {
    words.push_back(*table);
    if (const auto from = reader->Optional("from"); from)
      words.insert(words.end(), {"FROM", *from});
  }
  words.insert(words.end(), {"COUNT", std::to_string(reader->Number("count", kTablets))});
  return words;
}

// Sections of INFO, each a word.
std::vector<std::string> Info(ParameterReader* reader) {
  std::vector<std::string> words = reader->List("sections");
  if (words.empty()) words = {"everything"};
  words.insert(words.begin(), "INFO");
  return words;
}

// Of what a keyspace has; that is selected before.
std::vector<std::string> WordsInKeyspace(std::string_view path, ParameterReader* reader) {
  if (path == "tables") return {"TABLE", "LIST"};
  if (path == "feeds") return {"FEED", "LIST"};
  if (path == "feed") return {"FEED", "INFO", reader->Text("feed")};
  if (path == "groups") return {"XINFO", "GROUPS", reader->Text("feed")};
  if (path == "snapshots") return {"SNAPSHOT", "LIST"};
  if (path == "snapshot") return {"SNAPSHOT", "INFO", reader->Text("snapshot")};
  return {};
}

std::vector<std::string> WordsOf(std::string_view path, ParameterReader* reader) {
  if (path == "keyspaces") return {"KEYSPACE", "LIST"};
  if (path == "table") return {"TABLE", "INFO", reader->Text("table")};
  if (path == "definition") return {"TABLE", "SHOW", reader->Text("table")};
  if (path == "family") return {"FAMILY", "INFO", reader->Text("table"), reader->Text("family")};
  if (path == "indexes") return {"INDEX", "LIST", reader->Text("table")};
  if (path == "index") return {"INDEX", "INFO", reader->Text("table"), reader->Text("index")};
  if (path == "info") return Info(reader);
  if (path == "slowlog") return {"SLOWLOG", "GET", "50"};
  if (path == "heat") return Heat(reader);
  if (path == "hotkeys") return {"HOTKEYS", "GET"};
  if (path == "role") return {"ROLE"};
  if (path == "members") return {"REPLICA", "LIST"};
  if (path == "sets") return {"CLUSTER", "SETS"};
  if (path == "events") return {"CLUSTER", "EVENTS", "COUNT", "50"};
  if (path == "cuts") return {"CLUSTER", "CUTS", "COUNT", "10"};
  if (path == "backup-folder") return {"CONFIG", "GET", "backupdirname"};
  if (path == "cut-interval") return {"CLUSTER", "CONFIG", "GET", "cluster-cut-interval"};
  if (path == "tablets") return Tablets(reader);
  if (path == "jobs") return {"TABLET", "JOBS"};
  if (path == "commands") return {"COMMAND", "DOCS"};
  if (path == "backup") return {"BACKUP", "STATUS"};
  if (path == "users") return {"ACL", "USERS"};
  if (path == "user") return {"ACL", "GETUSER", reader->Text("user")};
  if (path == "config") return {"CONFIG", "GET", "*"};
  return {};
}

}  // namespace

Result<Question> QuestionOf(std::string_view path, const Parameters& parameters) {
  ParameterReader reader(parameters);
  if (IsRowQuestion(path)) return RowQuestion(path, &reader);
  Question question;
  question.is_typed = path == "typed";
  question.words = question.is_typed ? reader.List("words") : WordsInKeyspace(path, &reader);
  if (!question.is_typed && !question.words.empty()) question.keyspace = reader.Text("keyspace");
  if (question.words.empty()) question.words = WordsOf(path, &reader);
  if (path == "past") {
    question.words = {"INFO", "stats"};
    question.past_hours = reader.Number("hours", kHours);
  }
  if (question.words.empty()) return Status::Error(ErrorCode::kErr, "there is no such question");
  RETURN_IF_ERROR(reader.status());
  return question;
}

}  // namespace cellar::web
