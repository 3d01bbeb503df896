// Options: texts in, checked and canonical texts out; the file, the command line, the rewriting.
#include "commands/config/config.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "base/os/file.h"
#include "base/random.h"
#include "base/text/sealed_text.h"
#include "commands/config/config_file.h"
#include "commands/config/config_sources.h"

namespace cellar {
namespace config_test {

std::string Set(Config* config, std::string_view name, std::string_view text) {
  const ConfigOption* option = FindConfigOption(name);
  REQUIRE(option != nullptr);
  const Status status = SetConfigOption(config, *option, text);
  return status.ok() ? ConfigOptionText(*config, *option) : "error: " + status.text();
}

TEST_CASE("Each kind of option reads its texts and shows them in one form", "[commands]") {
  Config config;
  REQUIRE(Set(&config, "APPENDONLY", "NO") == "no");
  REQUIRE(Set(&config, "appendonly", "maybe") == "error: argument must be 'yes' or 'no'");
  REQUIRE(Set(&config, "maxmemory", "1gb") == "1073741824");
  REQUIRE(Set(&config, "maxmemory", "1g") == "1000000000");
  REQUIRE(Set(&config, "maxmemory", "-1") == "error: argument must be a memory value");
  REQUIRE(Set(&config, "timeout", "x") == "error: argument couldn't be parsed into an integer");
  REQUIRE(Set(&config, "port", "65536") == "error: argument must be between 0 and 65535 inclusive");
  REQUIRE(Set(&config, "unixsocketperm", "770") == "770");
  REQUIRE(config.unixsocketperm == 0770);
  REQUIRE(Set(&config, "appendfsync", "Always") == "always");
  REQUIRE(Set(&config, "save", " 10  1 ") == "10 1");
  REQUIRE(config.save_rules.size() == 1);
  REQUIRE(Set(&config, "save", "10") == "error: Invalid save parameters");
  REQUIRE(Set(&config, "notify-keyspace-events", "KEA") == "AKE");
  REQUIRE(Set(&config, "client-output-buffer-limit", "pubsub 1mb 0 0") ==
          "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 0 0");
}

TEST_CASE("The text of every default is read back as the default", "[commands]") {
  const Config defaults;
  Config config;
  for (const ConfigOption& option : ConfigOptions()) {
    INFO(option.name);
    const std::string text = ConfigOptionText(defaults, option);
    REQUIRE(SetConfigOption(&config, option, text).ok());
    REQUIRE(ConfigOptionText(config, option) == text);
    REQUIRE_FALSE(option.help.empty());
  }
}

TEST_CASE("File and command line set options; repeated ones add up", "[commands]") {
  Config config;
  REQUIRE(ReadConfigText(&config, "# c\n\nport 7000\nsave 1 2\nsave 3 4\nrequirepass \"a \\x41\"\n",
                         "test")
              .ok());
  REQUIRE(config.port == 7000);
  REQUIRE(config.save == "1 2 3 4");
  REQUIRE(config.requirepass == "a A");
  REQUIRE(ReadCommandLine(&config, {"--port", "7001", "--save", ""}).ok());
  REQUIRE(config.port == 7001);
  REQUIRE(config.save_rules.empty());
  REQUIRE_FALSE(ReadCommandLine(&config, {"port", "1"}).ok());
  const Status status = ReadConfigText(&config, "port 1\nnonsense 2\n", "a.conf");
  REQUIRE(
      status.text() ==
      "a.conf line 2: 'nonsense 2': Bad directive or wrong number of arguments: there is no option "
      "'nonsense'");
  REQUIRE(ReadConfigText(&config, "port x\nport 2\nsave \"\nhz 10\n", "a.conf").text() ==
          "a.conf line 1: 'port x': argument couldn't be parsed into an integer\n"
          "a.conf line 3: 'save \"': Unbalanced quotes");
  std::string many;
  for (int i = 0; i < 25; ++i) many += "rdbcompression yes\n";
  REQUIRE(ReadConfigText(&config, many, "a.conf").text().ends_with("'rdbcompression'\nand 5 more"));
  REQUIRE(ReadConfigText(&config, "prot 1\n", "a.conf").text().ends_with("did you mean 'port'?"));
  REQUIRE(ReadConfigText(&config, "\ninclude nosuch.conf\n", "a.conf").text() ==
          "a.conf line 2: 'include nosuch.conf': open 'nosuch.conf': No such file or directory");
}

TEST_CASE("CONFIG REWRITE says what is the default again where an included file does not",
          "[commands]") {
  const std::string path = std::filesystem::temp_directory_path() / "cellar-config-included.conf";
  REQUIRE(WriteFreshFile(FileSystem::Posix(), path, "timeout 10\nhz 20\n").ok());
  const std::string text = "include " + path + "\nport 6479\n";
  Config config;
  REQUIRE(ReadConfigText(&config, text, "test").ok());
  REQUIRE(config.timeout == 10);
  config.timeout = Config().timeout;
  const std::string rewritten = RewriteConfigText(config, {}, text);
  Config again;
  REQUIRE(ReadConfigText(&again, rewritten, "test").ok());
  CHECK(again.timeout == Config().timeout);
  CHECK(again.hz == 20);
  const std::string once_more = RewriteConfigText(again, {}, rewritten);
  Config third;
  REQUIRE(ReadConfigText(&third, once_more, "test").ok());
  CHECK(third.timeout == Config().timeout);
  // A line before the include does not count; one behind it does.
  config.timeout = 7;
  REQUIRE(ReadConfigText(&third, RewriteConfigText(config, {}, "timeout 3\n" + text), "test").ok());
  CHECK(third.timeout == 7);
  std::filesystem::remove(path);
}

TEST_CASE("CONFIG REWRITE keeps comments and order, and adds what is missing", "[commands]") {
  Config config;
  config.port = 7000;
  config.timeout = 9;
  const std::string text = "# mine\nport 6479\n\n# about saving\nsave 1 2\nsave 3 4\n";
  const std::string rewritten = RewriteConfigText(config, {}, text);
  REQUIRE(rewritten ==
          "# mine\nport 7000\n\n# about saving\nsave 3600 1 300 100 60 10000\n"
          "# Generated by CONFIG REWRITE\ntimeout 9\n");
  REQUIRE(RewriteConfigText(config, {}, rewritten) == rewritten);
  Config again;
  REQUIRE(ReadConfigText(&again, rewritten, "test").ok());
  REQUIRE(again.port == 7000);
  REQUIRE(again.timeout == 9);
}

// A directory with files, gone at the end.
class Files {
 public:
  Files() {
    char name[] = "/tmp/cellar-config-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory_ = name;
  }
  ~Files() { std::filesystem::remove_all(directory_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string Path(std::string_view name) const { return JoinPath(directory_, name); }
  std::string Write(std::string_view name, std::string_view text) const {
    REQUIRE(ReplaceFile(Path(name), text).ok());
    return Path(name);
  }
  std::string Read(std::string_view name) const {
    const Result<std::string> text = ReadWholeFile(FileSystem::Posix(), Path(name));
    return text.ok() ? *text : text.status().text();
  }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

// Users whose rules are the words of their lines.
ConfigUsers Users(std::vector<std::string> lines) {
  ConfigUsers users;
  users.plain = lines.empty();
  users.lines = std::move(lines);
  users.line_of = [](const std::vector<std::string>& words) -> Result<std::string> {
    std::string line = "user";
    for (const std::string& word : words) line.append(" ").append(word);
    return line;
  };
  return users;
}

TEST_CASE("A folder that is not there holds no file to include", "[commands]") {
  const Files files;
  for (const std::string_view pattern : {"no/*.conf", "no/where/*", "?o/x.conf", "a/*/b/*.conf"}) {
    Config config;
    INFO(pattern);
    CHECK(ReadConfigText(&config, "include " + files.Path(pattern) + "\nhz 20\n", "test").ok());
    CHECK(config.hz == 20);
  }
  Config config;
  CHECK_FALSE(ReadConfigText(&config, "include " + files.Path("no/one.conf") + "\n", "test").ok());
}

// Options and users over a file, files that it includes in front, in the middle and at the end, and
// runtime changes: what CONFIG REWRITE writes is always read back as what is, and what an included
// file says stands once.
TEST_CASE("CONFIG REWRITE writes what the next start reads, whatever files are included",
          "[commands]") {
  const Files files;
  Random random(20'261'126);
  constexpr std::string_view kNames[] = {"timeout", "hz",       "maxclients", "save",
                                         "bind",    "loglevel", "requirepass"};
  const auto value_of = [&random](std::string_view name) -> std::string {
    const std::string number = std::to_string(1 + random.Below(400));
    if (name == "save") return random.Below(4) == 0 ? "\"\"" : number + " 1";
    if (name == "bind") return random.Below(2) == 0 ? "127.0.0.1" : "127.0.0.1 -::1";
    if (name == "loglevel") return random.Below(2) == 0 ? "debug" : "notice";
    return number;
  };
  size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts(3);
    std::set<std::string> users;
    for (size_t part = 0; part < texts.size(); ++part) {
      for (size_t line = random.Below(4); line > 0; --line) {
        const std::string_view name = kNames[random.Below(std::size(kNames))];
        texts[part] += std::string(name) + " " + value_of(name) + "\n";
      }
      const std::string user = "u" + std::to_string(random.Below(6));
      if (random.Below(2) == 0 && users.insert(user).second)
        texts[part] += "user " + user + " on\n";
    }
    (void)files.Write("a.inc", texts[0]);
    (void)files.Write("b.inc", texts[1]);
    std::string text = "# mine\n" + texts[2];
    for (const std::string_view name : {"a.inc", "b.inc"}) {
      const std::string line = "include " + files.Path(name) + "\n";
      text = random.Below(2) == 0 ? line + text : text + line;
    }
    const std::string conf = files.Write("conf", text);
    ConfigSources sources(conf, {});
    Config config;
    REQUIRE(sources.Read(&config).ok());
    for (int change = 0; change < 3; ++change) {
      const std::string_view name = kNames[random.Below(std::size(kNames))];
      const std::string value = value_of(name);
      (void)Set(&config, name, value == "\"\"" ? "" : value);
    }
    std::vector<std::string> lines;
    for (const std::string& user : users) {
      const size_t what = random.Below(12);
      if (what == 0) continue;  // it has been deleted
      lines.push_back("user " + user + (what == 1 ? " off" : " on"));
    }
    if (random.Below(3) == 0) lines.push_back("user new on");
    ConfigUsers to_write = Users(lines);
    to_write.plain = false;
    const std::string before = files.Read("conf");
    const Status written = sources.Rewrite(config, to_write);
    INFO(before << "--\n" << texts[0] << "--\n" << texts[1] << "--\n" << files.Read("conf"));
    if (!written.ok()) {
      // Only of users that an included file has, and has otherwise.
      CHECK(written.text().find("a file that is only read defines it") != std::string::npos);
      CHECK(files.Read("conf") == before);
      ++refused;
      continue;
    }
    Config again;
    ConfigSources start(conf, {});
    const Status read = start.Read(&again);
    INFO(read.ToString());
    REQUIRE(read.ok());
    for (const ConfigOption& option : ConfigOptions())
      CHECK(ConfigOptionText(again, option) == ConfigOptionText(config, option));
    std::set<std::string> names;
    for (const std::vector<std::string>& user : again.users) names.insert(user[0] + " " + user[1]);
    std::set<std::string> wanted;
    for (const std::string& line : lines) wanted.insert(line.substr(5));
    CHECK(names == wanted);
    CHECK_FALSE(std::filesystem::exists(conf + ".new"));
  }
  CHECK(refused > 10);
  CHECK(refused < 200);
}

TEST_CASE("A file is replaced where the links to it lead, and leaves nothing at an error",
          "[commands]") {
  const Files files;
  (void)files.Write("real", "old");
  std::filesystem::create_directory(files.Path("sub"));
  std::filesystem::create_symlink("../real", files.Path("sub/one"));
  std::filesystem::create_symlink(files.Path("sub/one"), files.Path("two"));
  std::filesystem::create_symlink("sub/fresh", files.Path("to-none"));
  std::filesystem::create_symlink("loop", files.Path("loop"));
  REQUIRE(ReplaceFile(files.Path("two"), "new").ok());
  CHECK(files.Read("real") == "new");
  CHECK(std::filesystem::is_symlink(files.Path("two")));
  CHECK(std::filesystem::is_symlink(files.Path("sub/one")));
  REQUIRE(ReplaceFile(files.Path("to-none"), "fresh").ok());
  CHECK(files.Read("sub/fresh") == "fresh");
  CHECK(std::filesystem::is_symlink(files.Path("to-none")));
  CHECK_FALSE(ReplaceFile(files.Path("loop"), "x").ok());
  // A folder cannot be replaced by a file: the rename fails.
  std::filesystem::create_directory(files.Path("folder"));
  CHECK_FALSE(ReplaceFile(files.Path("folder"), "secret").ok());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(files.directory()))
    CHECK_FALSE(entry.path().string().ends_with(".new"));
}

TEST_CASE("include reads a file in its place, or all files that match a pattern", "[commands]") {
  const Files files;
  (void)files.Write("b.inc", "timeout 2\nhz 20\n");
  (void)files.Write("a.inc", "timeout 1\nhz 11\n");
  const std::string conf =
      files.Write("conf", "hz 30\ninclude " + files.Path("*.inc") + "\ntimeout 5\ninclude " +
                              files.Path("none*.inc") + "\n");
  Config config;
  REQUIRE(ReadConfigFile(&config, conf).ok());
  REQUIRE(config.hz == 20);
  REQUIRE(config.timeout == 5);

  (void)files.Write("c.inc", "\nhz many\n");
  const Status fault = ReadConfigFile(&config, conf);
  REQUIRE(fault.text().find(conf + " line 2: ") != std::string::npos);
  REQUIRE(fault.text().find(files.Path("c.inc") + " line 2: 'hz many'") != std::string::npos);
  REQUIRE_FALSE(
      ReadConfigFile(&config, files.Write("one", "include " + files.Path("no.inc"))).ok());
  const std::string loop = files.Write("loop", "include " + files.Path("loop") + "\n");
  REQUIRE(ReadConfigFile(&config, loop).text().find("too many nested") != std::string::npos);
}

TEST_CASE("CONFIG REWRITE puts what differs into the override file, which need not exist",
          "[commands]") {
  const Files files;
  const std::string head = "# Written by CONFIG REWRITE, which replaces it: what differs from " +
                           files.Path("conf") + ".\n# This file is read after that one.\n";
  const auto sealed = [&head](const std::string& lines) { return SealOptions(head + lines); };
  const std::string conf =
      files.Write("conf", "timeout 7\nmaxclients 500\nhz 20\noverride-file over\npidfile a\n");
  const std::vector<std::string> words{"--dir", files.directory(), "--hz", "30"};
  ConfigSources sources(conf, words);
  Config config;
  REQUIRE(sources.Read(&config).ok());
  REQUIRE(config.hz == 30);
  REQUIRE(sources.can_rewrite());

  REQUIRE(Set(&config, "maxclients", "600") == "600");
  REQUIRE(sources.Rewrite(config, Users({"user default on nopass", "user u on"})).ok());
  REQUIRE(files.Read("over") == sealed("maxclients 600\nuser default on nopass\nuser u on\n"));
  REQUIRE(files.Read("conf").starts_with("timeout 7"));
  struct stat status {};
  REQUIRE(::stat(files.Path("over").c_str(), &status) == 0);
  REQUIRE((status.st_mode & 0777) == 0600);

  // A start: the override file beats the file, the command line beats both.
  Config again;
  ConfigSources start(conf, {"--dir", files.directory(), "--maxclients", "700"});
  REQUIRE(start.Read(&again).ok());
  REQUIRE(again.maxclients == 700);
  REQUIRE(again.hz == 20);
  REQUIRE(again.users.size() == 2);
  // What only the command line says neither enters the file nor takes anything from it.
  REQUIRE(Set(&again, "hz", "21") == "21");
  REQUIRE(start.Rewrite(again, Users({})).ok());
  REQUIRE(files.Read("over") == sealed("maxclients 600\nhz 21\n"));
  // What is set back leaves the file; an edit of the file that was not read yet is not undone.
  (void)files.Write("conf", "timeout 8\nmaxclients 500\noverride-file over\n");
  REQUIRE(Set(&again, "hz", "20") == "20");
  REQUIRE(start.Rewrite(again, Users({})).ok());
  REQUIRE(files.Read("over") == sealed("maxclients 600\n"));
}

TEST_CASE("Any flipped bit of an override file is refused, and one without a checksum is read",
          "[commands]") {
  const Files files;
  ConfigSources sources("", {"--dir", files.directory(), "--override-file", files.Path("over")});
  Config config;
  REQUIRE(sources.Read(&config).ok());
  REQUIRE(Set(&config, "requirepass", "a secret") == "a secret");
  REQUIRE(sources.Rewrite(config, Users({})).ok());
  const std::string sound = files.Read("over");
  Config again;
  REQUIRE(sources.Read(&again).ok());
  REQUIRE(again.requirepass == "a secret");
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    (void)files.Write("over", flipped);
    const Status read = sources.Read(&again);
    INFO("bit " << bit << ": " << read.ToString());
    REQUIRE_FALSE(read.ok());
    REQUIRE(read.text().find(files.Path("over") + ": its checksum is wrong") == 0);
  }
  // As people change it, and as it was written before.
  const size_t first = sound.find('\n') + 1;
  const size_t last = sound.rfind('\n', sound.size() - 2) + 1;
  (void)files.Write("over", sound.substr(first, last - first) + "hz 20\n");
  REQUIRE(sources.Read(&again).ok());
  REQUIRE(again.hz == 20);
}

TEST_CASE("An override file with mistakes is refused, and nothing changes", "[commands]") {
  const Files files;
  Config config;
  ConfigSources sources("", {"--dir", files.directory(), "--override-file", files.Path("over")});
  (void)files.Write("over", "hz 20\nhz many\n");
  REQUIRE(sources.Read(&config).text().find(files.Path("over") + " line 2") == 0);
  REQUIRE(config.hz == 10);
  (void)files.Write("over", "hz 20\ndir /elsewhere\n");
  REQUIRE(sources.Read(&config).text().find("'dir' cannot be set here") != std::string::npos);
  (void)files.Write("over", "hz 20\n");
  REQUIRE(sources.Read(&config).ok());
  REQUIRE(config.hz == 20);
}

}  // namespace config_test
}  // namespace cellar
