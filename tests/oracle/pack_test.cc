#include "numsim/oracle/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/shared/sha256.h"
#include "numsim/oracle/case_text.h"
#include "numsim/oracle/cases.h"
#include "numsim/profiles/profile.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using Json = nlohmann::json;

const PackForm& Hex() { return FindPackForm("hex"); }

// Two small files.
std::vector<PackEntry> SmallEntries() {
  OperationRequest add;
  add.op = "add";
  add.format = "e4m3fn";
  OperationRequest convert;
  convert.op = "convert";
  convert.format = "fp32";
  convert.to = "e2m1fn";
  convert.rounding = Rounding{RoundingMode::kStochastic, StochasticVariant::kB, 8};
  convert.overflow = Overflow::kSaturate;
  return {{add, {CaseLevel::Kind::kFull, 0, 0}}, {convert, {CaseLevel::Kind::kRandom, 1000, 7}}};
}

class PackTest : public IoTest {
 protected:
  std::vector<std::string> NamesIn(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(Path(name))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Json Manifest(const std::string& name) const {
    return Json::parse(Bytes(Path(name) / "manifest.json"));
  }
  // Paths, cases and mismatches that CheckPack reports.
  std::vector<std::string> Check(const std::string& name) const {
    std::vector<std::string> reports;
    CheckPack(Path(name), 5, [&](const PackFile& file, const Operation&, const Judge& judge) {
      reports.push_back(fmt::format("{} {} {}", file.path, judge.cases(), judge.mismatches()));
    });
    return reports;
  }
};

TEST_F(PackTest, HoldsWhatItsManifestSays) {
  WritePack(Path("pack"), "test", SmallEntries(), Hex());
  const std::string add = "add-e4m3fn-full.txt";
  const std::string convert = "convert-fp32-to-e2m1fn-sr-b8-saturate-random-1000.txt";
  EXPECT_EQ(NamesIn("pack"),
            (std::vector<std::string>{"README.md", add, convert, "manifest.json"}));
  const Json manifest = Manifest("pack");
  EXPECT_EQ(manifest["pack"], "test");
  ASSERT_EQ(manifest["files"].size(), 2u);
  for (const Json& file : manifest["files"]) {
    const std::filesystem::path path = Path("pack") / file["path"].get<std::string>();
    const std::string text = Bytes(path);
    EXPECT_EQ(file["sha256"], Sha256Hex(path));
    EXPECT_EQ(file["bytes"], text.size());
    EXPECT_EQ(file["cases"], std::count(text.begin(), text.end(), '\n'));
  }
  const Json& first = manifest["files"][0];
  EXPECT_EQ(first["request"], Json::parse(R"({"operation": "add", "format": "e4m3fn"})"));
  EXPECT_EQ(first["cases"], 65536);
  EXPECT_EQ(first["columns"][0],
            Json::parse(R"({"name": "a", "role": "input", "bits": 8, "kind": "code",
                            "format": "e4m3fn"})"));
  EXPECT_EQ(first["columns"].back(),
            Json::parse(R"({"name": "flags", "role": "flags", "bits": 8})"));
  EXPECT_EQ(manifest["files"][1]["command"],
            "numsim oracle gen --results --op convert --format fp32 --to e2m1fn --rounding sr "
            "--sr-variant b --sr-bits 8 --overflow saturate --level random:1000 --seed 7");
}

// The numbers of a text, in any form: digits after a prefix, a separator or none.
std::vector<uint64_t> NumbersOf(std::string text, int base) {
  std::vector<uint64_t> numbers;
  std::replace_if(
      text.begin(),
      text.end(),
      [](char c) { return std::string_view("_,[]{} ").find(c) != std::string_view::npos; },
      '\n');
  std::istringstream lines(text);
  for (std::string word; lines >> word;) numbers.push_back(std::stoull(word, nullptr, base));
  return numbers;
}

TEST_F(PackTest, EveryFormHoldsTheSameNumbers) {
  for (const PackForm& form : PackForms()) {
    WritePack(Path(std::string(form.name)), "test", SmallEntries(), form);
  }
  for (const PackEntry& entry : SmallEntries()) {
    const auto text = [&](const char* form) {
      return Bytes(Path(form) / PackFileName(entry, FindPackForm(form)));
    };
    const std::vector<uint64_t> numbers = NumbersOf(text("hex"), 16);
    std::string words = text("readmemh");
    words.erase(0, words.find("\n", words.rfind("//")));  // what is left are words
    EXPECT_EQ(NumbersOf(words, 16), numbers);
    const std::string csv = text("csv");
    EXPECT_EQ(NumbersOf(csv.substr(csv.find('\n')), 16), numbers);
    std::vector<uint64_t> of_json;
    const Json object = Json::parse(text("json"));
    for (const Json& row : object["cases"]) {
      of_json.insert(of_json.end(), row.begin(), row.end());
    }
    EXPECT_EQ(of_json, numbers);
  }
  EXPECT_EQ(
      Check("npy"),
      (std::vector<std::string>{"add-e4m3fn-full.npy 65536 0",
                                "convert-fp32-to-e2m1fn-sr-b8-saturate-random-1000.npy 1000 0"}));
  EXPECT_EQ(Manifest("csv")["form"], "csv");
  EXPECT_EQ(Manifest("csv")["files"][0]["bytes"], Bytes(Path("csv/add-e4m3fn-full.csv")).size());
  EXPECT_EQ(
      Manifest("npy")["files"][0]["command"],
      "numsim oracle gen --results --op add --format e4m3fn --level full --npy add-e4m3fn-full.npy");
  ExpectMessage(ErrorOf([&] { Check("csv"); }), {"csv/manifest.json", "form csv", "hex and npy"});
  ExpectMessage(ErrorOf([] { FindPackForm("hx"); }),
                {"--as", "'hx'", "hex, json, csv, readmemh, npy"});
}

// Without the profile in its manifest, numsim's own rule would judge.
TEST_F(PackTest, KeepsTheProfile) {
  const PackEntry entry = {
      {.op = "convert", .format = "fp32", .to = "e4m3fn", .profile = "qpytorch"},
      {CaseLevel::Kind::kEdges, 0, 0}};
  WritePack(Path("pack"), "test", std::span(&entry, 1), Hex());
  EXPECT_THAT(Check("pack"), ::testing::ElementsAre(::testing::EndsWith(" 0")));
  EXPECT_THAT(PackCommand(entry, Hex()), ::testing::HasSubstr(" --profile qpytorch "));
  EXPECT_THAT(Bytes(Path("pack/convert-fp32-to-e4m3fn-qpytorch-edges.txt")),
              ::testing::HasSubstr("\n7F800000 7F\n"));  // infinity becomes 480
}

TEST_F(PackTest, SameBytesEveryTime) {
  WritePack(Path("a"), "test", SmallEntries(), Hex());
  WritePack(Path("b"), "test", SmallEntries(), Hex());
  ASSERT_EQ(NamesIn("a"), NamesIn("b"));
  for (const std::string& name : NamesIn("a")) {
    EXPECT_EQ(Bytes(Path("a") / name), Bytes(Path("b") / name)) << name;
  }
}

TEST_F(PackTest, OwnPackIsRight) {
  WritePack(Path("pack"), "test", SmallEntries(), Hex());
  EXPECT_EQ(
      Check("pack"),
      (std::vector<std::string>{"add-e4m3fn-full.txt 65536 0",
                                "convert-fp32-to-e2m1fn-sr-b8-saturate-random-1000.txt 1000 0"}));
}

// Without the permission in its manifest, the pack would be refused.
TEST_F(PackTest, KeepsThePermissionForAnyOperands) {
  const PackEntry dot = {{.op = "dot",
                          .format = "e4m3fn",
                          .to = "fp32",
                          .accumulation = "hopper-bf16",
                          .any_operands = true,
                          .length = 2},
                         {CaseLevel::Kind::kRandom, 50, 1}};
  WritePack(Path("pack"), "test", std::span(&dot, 1), Hex());
  EXPECT_EQ(Check("pack").size(), 1u);
  EXPECT_THAT(PackCommand(dot, Hex()), ::testing::HasSubstr(" --any-operands "));
}

// Without the convention in its manifest, the integers would be wrong.
TEST_F(PackTest, KeepsTheConventionOfInvalidIntegers) {
  const PackEntry entry = {
      {.op = "to-u8", .format = "e4m3fn", .invalid_integer = InvalidInteger::kX86},
      {CaseLevel::Kind::kFull, 0, 0}};
  WritePack(Path("pack"), "test", std::span(&entry, 1), Hex());
  EXPECT_EQ(Check("pack"), std::vector<std::string>{"to-u8-e4m3fn-x86-full.txt 256 0"});
  EXPECT_THAT(PackCommand(entry, Hex()), ::testing::HasSubstr(" --invalid-integer x86 "));
  // Code FE is -448.
  EXPECT_THAT(Bytes(Path("pack/to-u8-e4m3fn-x86-full.txt")), ::testing::HasSubstr("\nFE FF 10\n"));
}

TEST_F(PackTest, ChangedFilesAreFound) {
  WritePack(Path("pack"), "test", SmallEntries(), Hex());
  const std::string add = "pack/add-e4m3fn-full.txt";
  std::string text = Bytes(Path(add));
  text[6] = text[6] == '0' ? '1' : '0';  // the result of the first case
  Put(add, text);
  ExpectMessage(ErrorOf([&] { Check("pack"); }), {"add-e4m3fn-full.txt", "SHA-256"});
  // With a digest that fits, the cases themselves are judged.
  Json manifest = Manifest("pack");
  manifest["files"][0]["sha256"] = Sha256Hex(Path(add));
  Put("pack/manifest.json", manifest.dump());
  EXPECT_EQ(Check("pack")[0], "add-e4m3fn-full.txt 65536 1");
  manifest["files"][0]["cases"] = 65535;
  Put("pack/manifest.json", manifest.dump());
  ExpectMessage(ErrorOf([&] { Check("pack"); }), {"add-e4m3fn-full.txt", "65536 cases", "65535"});
}

TEST_F(PackTest, OnlyNewOrEmptyDirectoriesAreWritten) {
  std::filesystem::create_directory(Path("empty"));
  WritePack(Path("empty"), "test", SmallEntries(), Hex());
  ExpectMessage(ErrorOf([&] { WritePack(Path("empty"), "test", SmallEntries(), Hex()); }),
                {"empty", "not empty"});
  Put("file", "x");
  ExpectMessage(ErrorOf([&] { WritePack(Path("file"), "test", SmallEntries(), Hex()); }),
                {"file", "cannot create"});
  ExpectMessage(ErrorOf([&] { WritePack(Path("file/below"), "test", SmallEntries(), Hex()); }),
                {"file/below", "cannot create"});
}

TEST_F(PackTest, EntryAtFaultLeavesNothingBehind) {
  std::vector<PackEntry> entries = SmallEntries();
  entries[1].request.to = "nope";
  ExpectMessage(ErrorOf([&] { WritePack(Path("pack"), "test", entries, Hex()); }), {"nope"});
  EXPECT_EQ(Names(), std::vector<std::string>{});
}

TEST_F(PackTest, ManifestsAtFault) {
  struct Bad {
    std::string text;
    std::vector<std::string> message;
  };
  const std::string file =
      R"({"path": "x.txt", "cases": 1, "sha256": "", "request": {"operation": "add"}})";
  for (const Bad& bad : std::vector<Bad>{
           {"{", {"manifest.json"}},
           {"[]", {"manifest.json"}},
           {R"({"files": []})", {"manifest_version"}},
           {R"({"manifest_version": 2, "files": []})", {"manifest_version is 2, expected 1"}},
           {R"({"manifest_version": 1, "files": []})", {"no files"}},
           {R"({"manifest_version": 1, "files": [{}]})", {"files[0]", "path"}},
           {R"({"manifest_version": 1, "files": [)" + file + ", {\"path\": 3}]}", {"files[1]"}},
           {R"({"manifest_version": 1, "files": [{"path": "../x"}]})", {"files[0]", "'../x'"}},
           {R"({"manifest_version": 1, "files": [)" + file + "]}", {"x.txt"}}}) {
    Put("manifest.json", bad.text);
    ExpectMessage(ErrorOf([&] { Check("."); }), bad.message);
  }
  std::filesystem::remove(Path("manifest.json"));
  ExpectMessage(ErrorOf([&] { Check("."); }), {"manifest.json"});
}

class PackSetTest : public ::testing::TestWithParam<std::string_view> {};

TEST_P(PackSetTest, EntriesAreGoodDistinctAndFitForARepository) {
  constexpr uint64_t kMostBytes = 30'000'000;
  std::set<std::string> names;
  uint64_t bytes = 0;
  for (const PackEntry& entry : PackEntries(GetParam())) {
    const std::unique_ptr<Operation> operation = MakeOperation(entry.request);
    const CaseRows rows(*operation, entry.level, true);
    EXPECT_TRUE(names.insert(PackFileName(entry, Hex())).second) << PackFileName(entry, Hex());
    EXPECT_GT(rows.size(), 0u) << PackFileName(entry, Hex());
    const bool own_rule = entry.request.profile.empty();
    EXPECT_EQ(entry.request.rounding.has_value(), own_rule && operation->info().options.rounding);
    EXPECT_EQ(entry.request.overflow.has_value(), own_rule && operation->info().options.overflow);
    bytes += rows.size() * RowText(rows.columns()).bytes();
  }
  EXPECT_GT(names.size(), 10u);
  EXPECT_LT(bytes, kMostBytes);
}

std::vector<std::string_view> SetNames() {
  std::vector<std::string_view> names;
  for (const PackSetInfo& info : PackSets()) names.push_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Sets, PackSetTest, ::testing::ValuesIn(SetNames()), [](const auto& set) {
  std::string name(set.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Returns the values that a field has in the requests of a set.
std::set<std::string> ValuesOf(std::string_view set, std::string OperationRequest::*member) {
  std::set<std::string> values;
  for (const PackEntry& entry : PackEntries(set)) values.insert(entry.request.*member);
  return values;
}

template <typename Table>
std::set<std::string> NamesOf(const Table& table) {
  std::set<std::string> names;
  for (const auto& row : table) names.emplace(row.name);
  return names;
}

TEST(PackEntries, SetsOfTablesHaveEveryRow) {
  EXPECT_EQ(ValuesOf("formats", &OperationRequest::to), NamesOf(FormatTable()));
  EXPECT_EQ(ValuesOf("formats", &OperationRequest::format), NamesOf(FormatTable()));
  EXPECT_EQ(ValuesOf("operations", &OperationRequest::op), NamesOf(OperationTable()));
  EXPECT_EQ(ValuesOf("profiles", &OperationRequest::profile), NamesOf(ProfileTable()));
  EXPECT_EQ(ValuesOf("accumulation-modes", &OperationRequest::accumulation),
            NamesOf(AccumulationModeTable()));
}

TEST(PackEntries, UnknownSetNamesTheOption) {
  ExpectMessage(ErrorOf([] { PackEntries("nope"); }), {"--set", "'nope'", "standard"});
}

}  // namespace
}  // namespace numsim
