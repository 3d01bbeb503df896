// See state.h.
#include "cellar-export/state.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/os/file.h"
#include "base/text/quote.h"
#include "client/command_words.h"

namespace cellar::exporter {
namespace {

using nlohmann::json;

std::string_view FormatName(Format format) {
  switch (format) {
    case Format::kRows:
      return "rows";
    case Format::kJsonLines:
      return "jsonl";
    case Format::kCsv:
      return "csv";
    case Format::kTsv:
      return "tsv";
    case Format::kAvro:
      return "avro";
  }
  return "";
}

// The text of a member, or nothing.
std::string TextOf(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

uint64_t NumberOf(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

}  // namespace

Status SaveState(const std::string& path, const Options& options,
                 const std::vector<std::string>& words, const State& state) {
  const json object = {{"table", options.table},
                       {"words", words},
                       {"format", FormatName(options.format)},
                       {"snapshot", state.snapshot},
                       {"marker", state.marker},
                       {"bytes", state.bytes},
                       {"cursor", state.cursor},
                       {"rows", state.rows},
                       {"cells", state.cells},
                       {"done", state.done}};
  return ReplaceFile(path, object.dump(-1, ' ', true, json::error_handler_t::replace) + "\n");
}

Result<State> LoadState(const std::string& path, const Options& options,
                        const std::vector<std::string>& words) {
  State state;
  ASSIGN_OR_RETURN(state.is_begun, FileSystem::Posix().Exists(path));
  if (!state.is_begun) return state;
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(FileSystem::Posix(), path));
  const json object = json::parse(text, nullptr, false);
  // As they were written: a word that is not UTF-8 is replaced there.
  const json wanted = json::parse(json(words).dump(-1, ' ', true, json::error_handler_t::replace));
  const auto is = [&object](const char* name, const json& value) {
    return object.is_object() && object.contains(name) && object[name] == value;
  };
  if (!is("table", options.table) || !is("words", wanted) ||
      !is("format", FormatName(options.format))) {
    return Status::Error(ErrorCode::kErr, path +
                                              ": is the state of another export (table, options or "
                                              "format differ); remove it to start over");
  }
  state.snapshot = TextOf(object, "snapshot");
  state.marker = TextOf(object, "marker");
  state.bytes = NumberOf(object, "bytes");
  if (const std::string cursor = TextOf(object, "cursor"); !cursor.empty()) state.cursor = cursor;
  state.rows = NumberOf(object, "rows");
  state.cells = NumberOf(object, "cells");
  state.done = is("done", true);
  return state;
}

Status SaveDivision(const std::string& path, const Division& division) {
  std::string text;
  for (const std::string& key : division.keys) text += QuoteWord(key) + " ";
  return ReplaceFile(path, text + "\n" + division.snapshot + "\n");
}

Result<Division> LoadDivision(const std::string& path) {
  Division division;
  ASSIGN_OR_RETURN(division.is_begun, FileSystem::Posix().Exists(path));
  if (!division.is_begun) return division;
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(FileSystem::Posix(), path));
  const size_t end = text.find('\n');
  division.keys = client::SplitCliWords(std::string_view(text).substr(0, end));
  if (end != std::string::npos) {
    division.snapshot = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
  }
  return division;
}

}  // namespace cellar::exporter
