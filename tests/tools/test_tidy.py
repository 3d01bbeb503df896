"""tools/tidy.py finds what it should, and the sources as they are pass it."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))

import tidy  # noqa: E402


class TidyTest(unittest.TestCase):
    def messages(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return [message for path in tidy.sources(root) for message in tidy.check_file(root, path)]

    def test_an_include_that_points_down_passes(self):
        self.assertEqual([], self.messages({
            "src/server/a.cc": '// A.\n#include <uv.h>\n#include "commands/b.h"\n#include "base/c.h"\n',
            "src/main.cc": '// M.\n#include "server/a.h"\n#include "store/b.h"\n',
            "src/engine/rows/d.cc": '// D.\n#include "btree/e.h"\n#include "engine/keys/f.h"\n#include <string>\n'}))

    def test_an_upward_include_is_found(self):
        found = self.messages({"src/engine/keys/a.cc": '// A.\n#include <vector>\n#include "store/b.h"\n'})
        self.assertEqual(['src/engine/keys/a.cc:3: engine must not see store ("store/b.h")'], found)

    def test_a_sideways_include_is_found(self):
        self.assertEqual(1, len(self.messages({"src/btree/a.cc": '// A.\n#include "resp/b.h"\n'})))

    def test_an_include_of_a_higher_floor_is_found(self):
        found = self.messages({"src/engine/keys/a.cc": '// A.\n#include "engine/rows/b.h"\n',
                               "src/commands/arguments/c.cc": '// C.\n#include "commands/d.h"\n'})
        self.assertEqual(['src/commands/arguments/c.cc:2: commands/arguments must not see the floor above it ("commands/d.h")',
                          'src/engine/keys/a.cc:2: engine/keys must not see the floor above it ("engine/rows/b.h")'],
                         found)

    def test_a_floor_that_nobody_drew_is_found(self):
        self.assertEqual(["src/engine/cellar/a.cc: engine has no floor 'cellar'"],
                         self.messages({"src/engine/cellar/a.cc": "// A.\n"}))
        self.assertEqual(["src/engine/a.cc: engine has no floor ''"], self.messages({"src/engine/a.cc": "// A.\n"}))

    def test_an_upward_include_through_a_public_header_is_found(self):
        found = self.messages({"include/cellar/store.h": "// Store.\n", "src/store/store.cc": "// Store.\n",
                               "src/base/a.cc": '// A.\n#include "cellar/store.h"\n'})
        self.assertEqual(1, len(found))

    def test_a_public_header_includes_public_headers_only(self):
        self.assertEqual(1, len(self.messages({"include/cellar/a.h": '// A.\n#include "base/b.h"\n'})))

    def test_libuv_belongs_to_the_server(self):
        found = self.messages({"src/commands/a.cc": "// A.\n#include <uv.h>\n"})
        self.assertEqual(["src/commands/a.cc:2: only server/ includes <uv.h>"], found)

    def test_libcurl_belongs_to_one_file(self):
        self.assertEqual([], self.messages({"src/s3/http.cc": "// A.\n#include <curl/curl.h>\n"}))
        found = self.messages({"src/s3/a.cc": "// A.\n#include <curl/curl.h>\n"})
        self.assertEqual(["src/s3/a.cc:2: only src/s3/http.cc includes <curl/curl.h>"], found)

    def test_a_file_opens_with_a_comment(self):
        self.assertEqual(1, len(self.messages({"src/base/a.h": "#pragma once\n"})))

    def test_a_file_beyond_the_limit_is_found(self):
        self.assertEqual([], self.messages({"tests/base/a_test.cc": "// line\n" * 1000}))
        self.assertEqual(1, len(self.messages({"tests/base/a_test.cc": "// line\n" * 1001})))

    def test_a_wide_comment_is_found(self):
        self.assertEqual([], self.messages({"src/base/a.h": "// A" + "." * 96 + "\n"}))
        self.assertEqual(1, len(self.messages({"src/base/a.h": "// A" + "." * 97 + "\n"})))
        self.assertEqual([], self.messages({"src/base/a.h": "// See https://" + "a" * 97 + "\n"}))

    def function(self, code_lines, comment=""):
        return "// A.\nint F(int a) {\n" + comment + "  a++;\n" * (code_lines - 2) + "}\n"

    def test_a_long_function_is_found_unless_it_says_why(self):
        self.assertEqual([], self.messages({"src/base/a.cc": self.function(70)}))
        self.assertEqual(1, len(self.messages({"src/base/a.cc": self.function(71)})))
        self.assertEqual([], self.messages({"src/base/a.cc": self.function(70, "\n  // why\n" * 9)}))
        self.assertEqual([], self.messages(
            {"src/base/a.cc": self.function(99, "  // tidy: long because it is one table.\n")}))

    def test_a_long_table_is_no_function(self):
        self.assertEqual([], self.messages({"src/base/a.cc": "// A.\nconst Row kRows[] = {\n" + "  {1},\n" * 99
                                                             + "};\n"}))

    def test_a_sign_to_nowhere_is_found(self):
        files = {"src/base/b.h": "// B.\n"}
        for sign in ("see b.h", "see base/b.h", "see src/base/b.h.", "<nobody.h>", "a.h()",
                     "https://example.org/c.h", "*_test.cc"):
            self.assertEqual([], self.messages({"src/base/a.h": f"// A: {sign}\n", **files}), sign)
        for sign in ("see c.h", "base/c.cc", "engine/b.h"):
            self.assertEqual(1, len(self.messages({"src/base/a.h": f"// A: {sign}\n", **files})), sign)
            self.assertEqual(1, len(self.messages({"src/base/a.h": f"// A.\nint a;  // {sign}\n", **files})))

    def test_members_and_public_functions_of_a_class_are_counted(self):
        text = ("class Hub final : public Other {\n public:\n  Hub();\n  ~Hub() override;\n"
                "  // A comment; of two(parts).\n  int size() const { return size_; }\n"
                "  void Run(const std::function<void()>& visit) override;\n"
                "  struct Inner {\n    int a;\n    void B();\n  };\n"
                "  Result<std::string> Ask(std::string_view a,\n                          int b);\n"
                " private:\n  static constexpr int kMax{3};\n  void Hidden();\n"
                "  int size_{0};  // of it\n  std::function<void(int)> told_{};\n  uv_loop_t loop_{};\n"
                "  std::map<int, std::string> names_{\n      {1, std::string()}};\n};\n")
        self.assertEqual((4, 5), tidy.count_members(text, "Hub"))
        self.assertEqual((2, 0), tidy.count_members("struct Config {\n  int a{0};\n  std::string b;\n};\n", "Config"))
        self.assertIsNone(tidy.count_members(text, "Nobody"))

    def test_no_hub_has_grown(self):
        self.assertEqual([], tidy.check_hubs(ROOT))

    def test_the_sources_pass(self):
        known = tidy.known_names(ROOT)
        self.assertEqual([], [message for path in tidy.sources(ROOT)
                              for message in tidy.check_file(ROOT, path, known)])


if __name__ == "__main__":
    unittest.main()
