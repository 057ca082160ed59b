#include "numsim/io/manifest.h"

#include <nlohmann/json.hpp>

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using ManifestTest = IoTest;
using Json = nlohmann::ordered_json;

TEST_F(ManifestTest, HasEveryFieldInTheOrderOfTheStruct) {
  Manifest manifest;
  manifest.command = {"numsim", "run", "sr-bias"};
  manifest.experiment = "sr-bias";
  manifest.options = {{"seeds", "2"}, {"preset", "quick"}};
  manifest.policies = {{"rounding", "rne"}};
  manifest.seeds = {0, UINT64_MAX};
  manifest.versions = {{"numsim", "0.1.0"}, {"fmt", "9.1.0"}};
  manifest.host = {"CPU", 2, "Linux"};
  manifest.threads = 2;
  manifest.started = "2026-01-01T00:00:00Z";
  manifest.outputs = {{"a.csv", 3, "abcd"}};
  WriteManifest(Path("manifest.json"), manifest);

  const std::string text = Bytes(Path("manifest.json"));
  EXPECT_TRUE(text.starts_with("{\n  \"command\": [\n    \"numsim\",\n"));
  EXPECT_TRUE(text.ends_with("}\n"));
  const Json json = Json::parse(text);
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_EQ(keys,
            (std::vector<std::string>{"command",
                                      "experiment",
                                      "options",
                                      "policies",
                                      "seeds",
                                      "git_commit",
                                      "compiler",
                                      "build_type",
                                      "backend",
                                      "simd_target",
                                      "versions",
                                      "host",
                                      "threads",
                                      "started",
                                      "ended",
                                      "outputs"}));
  EXPECT_EQ(json["options"].dump(), R"({"seeds":"2","preset":"quick"})");
  EXPECT_EQ(json["seeds"][1].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json["host"]["cores"], 2);
  EXPECT_EQ(json["outputs"][0].dump(), R"({"path":"a.csv","bytes":3,"sha256":"abcd"})");
}

TEST_F(ManifestTest, EmptyListsAndObjectsStayWhatTheyAre) {
  WriteManifest(Path("m.json"), Manifest{});
  const Json json = Json::parse(Bytes(Path("m.json")));
  EXPECT_TRUE(json["command"].is_array());
  EXPECT_TRUE(json["options"].is_object());
  EXPECT_TRUE(json["outputs"].is_array());
}

TEST_F(ManifestTest, TextThatIsNotUtf8IsReplacedAndNotAnError) {
  Manifest manifest;
  manifest.command = {"numsim", "caf\xe9.npy", "\"quoted\"\n"};
  WriteManifest(Path("m.json"), manifest);
  const Json json = Json::parse(Bytes(Path("m.json")));
  EXPECT_EQ(json["command"][1], "caf\xef\xbf\xbd.npy");
  EXPECT_EQ(json["command"][2], "\"quoted\"\n");
}

TEST_F(ManifestTest, OutputsAreDescribedBySizeAndDigest) {
  Put("a.csv", "abc");
  const OutputFile output = DescribeOutput(Directory(), "a.csv");
  EXPECT_EQ(output.path, "a.csv");
  EXPECT_EQ(output.bytes, 3u);
  EXPECT_TRUE(output.sha256.starts_with("ba7816bf"));
  ExpectMessage(ErrorOf([&] { DescribeOutput(Directory(), "no.csv"); }), {"no.csv"});
}

TEST(DescribeHost, FindsCoresAndSystem) {
  const HostInfo host = DescribeHost();
  EXPECT_GE(host.cores, 1);
  EXPECT_FALSE(host.os.empty());
}

TEST(UtcNow, IsIso8601) {
  std::string shape = UtcNow();
  for (char& c : shape) c = c >= '0' && c <= '9' ? 'd' : c;
  EXPECT_EQ(shape, "dddd-dd-ddTdd:dd:ddZ");
}

}  // namespace
}  // namespace numsim
