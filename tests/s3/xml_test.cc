// What is read of a server's answers.
#include "s3/xml.h"

#include <catch2/catch.hpp>
#include <string>

namespace cellar {
namespace xml_test {

TEST_CASE("Elements of an answer are found by their whole names", "[s3]") {
  const std::string text =
      "<?xml version=\"1.0\"?><List xmlns=\"x\"><KeyCount>2</KeyCount>"
      "<Contents><Key>a&amp;b</Key><Size>1</Size></Contents><Contents><Key/><Size>2</Size>"
      "</Contents><Key>last</Key></List>";
  REQUIRE(XmlElement(text, "Key") == "a&amp;b");
  REQUIRE(XmlElement(text, "KeyCount") == "2");
  REQUIRE(XmlElement(text, "Missing").empty());
  const auto contents = XmlElements(text, "Contents");
  REQUIRE(contents.size() == 2);
  REQUIRE(XmlElement(contents[1], "Key").empty());
  REQUIRE(XmlElement(contents[1], "Size") == "2");
  REQUIRE(XmlElement(text, "List").ends_with("<Key>last</Key>"));
  for (size_t end = 0; end < text.size(); ++end) {
    const std::string cut = text.substr(0, end);
    REQUIRE(XmlElement(cut, "List").empty());
    REQUIRE(XmlElements(cut, "Contents").size() <= 2);
  }
}

TEST_CASE("Entities become what they stand for", "[s3]") {
  REQUIRE(XmlText("&quot;a&lt;b&gt;&apos;&amp;amp;&quot;") == "\"a<b>'&amp;\"");
  REQUIRE(XmlText("&#34;&#x41;&#X41;") == "\"A&#X41;");
  REQUIRE(XmlText("&#300;&#;&#x;&none;&") == "&#300;&#;&#x;&none;&");
  REQUIRE(XmlText("&#99999999999;") == "&#99999999999;");
  REQUIRE(XmlText("&#65;&#x0041;") == "AA");
  // Of a server that lies; each would be looked for to the end of the text.
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "&#";
  REQUIRE((XmlText(many) == many));
}

}  // namespace xml_test
}  // namespace cellar
