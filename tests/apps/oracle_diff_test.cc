// numsim oracle diff and profiles, and --profile of cast and inspect.
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "numsim/profiles/diff.h"
#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProfileConversion Conversion(const std::string& profile,
                             const std::string& target,
                             SourceType from = SourceType::kFloat32) {
  return ProfileConversion(profile, from, ParseFormat(target));
}

uint64_t Hex(const std::string& text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const bool prefixed = text.starts_with("0x");
  const auto result = std::from_chars(text.data() + (prefixed ? 2 : 0), end, value, 16);
  EXPECT_TRUE(prefixed && result.ec == std::errc() && result.ptr == end) << text;
  return value;
}

class OracleDiff : public ProgramTest {
 protected:
  // A command that must fail: exit code 2, one line on stderr that contains each of `named`.
  void ExpectError(const std::string& words, const std::vector<std::string>& named) const {
    const Outcome outcome = Numsim(words);
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const std::string& text : named) {
      EXPECT_THAT(outcome.err, HasSubstr(text));
    }
  }

  // The rows of a file that `diff --csv` wrote, without its header.
  std::vector<std::vector<std::string>> Rows(const std::string& name) const {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(Bytes(Path(name)));
    std::string line;
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with("first_bits,last_bits,first,last,count,code_a,")) << line;
    while (std::getline(lines, line)) {
      std::istringstream cells(line);
      rows.emplace_back();
      for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
    }
    return rows;
  }

  // Runs `oracle diff` within 30 s and compares all that it prints with the library's list.
  void ExpectLibrarysIntervals(const std::string& a,
                               const std::string& b,
                               const std::string& target) const {
    const auto start = std::chrono::steady_clock::now();
    const std::string out = Output(
        fmt::format("oracle diff {} {} --from float32 --to {} --csv diff.csv", a, b, target));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 30.0);
    const Difference difference = Diff(Conversion(a, target), Conversion(b, target));
    const std::string summary = fmt::format("{} intervals; {} of 2^32 inputs differ",
                                            difference.intervals.size(),
                                            difference.differing);
    EXPECT_THAT(out, HasSubstr(summary));
    size_t printed = 0;
    for (const DifferingInterval& interval : difference.intervals) {
      const std::string row = fmt::format("0x{:08X}  0x{:08X}", interval.first, interval.last);
      if (out.find("\n" + row) != std::string::npos) ++printed;
    }
    EXPECT_EQ(printed, difference.intervals.size());
    const auto rows = Rows("diff.csv");
    ASSERT_EQ(rows.size(), difference.intervals.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const DifferingInterval& interval = difference.intervals[i];
      ASSERT_GE(rows[i].size(), 10u);
      EXPECT_EQ(Hex(rows[i][0]), interval.first);
      EXPECT_EQ(Hex(rows[i][1]), interval.last);
      EXPECT_EQ(rows[i][4], std::to_string(interval.Count()));
      EXPECT_EQ(Hex(rows[i][5]), interval.code_a);
      EXPECT_EQ(Hex(rows[i][7]), interval.code_b);
      const uint64_t example = Hex(rows[i][9]);
      EXPECT_GE(example, interval.first);
      EXPECT_LE(example, interval.last);
    }
  }
};

TEST_F(OracleDiff, ListsWhereCudaAndHipDiffer) {
  ExpectLibrarysIntervals("cuda-13", "hip-host", "e4m3fn");
}

TEST_F(OracleDiff, ListsWhereMlDtypesAndTorchDiffer) {
  ExpectLibrarysIntervals("ml-dtypes", "torch-2.11", "e8m0fnu");
}

TEST_F(OracleDiff, ListsWhereCudaAndQPyTorchDiffer) {
  ExpectLibrarysIntervals("cuda-13", "qpytorch", "e4m3fn");
}

TEST_F(OracleDiff, ListsTheSmallFormatsToo) {
  ExpectLibrarysIntervals("cuda-13", "ml-dtypes", "e2m1fn");
  ExpectLibrarysIntervals("cuda-13-rz", "cuda-13", "e3m2fn");
}

// 41,943,039 + 524,288 of each sign, and the NaNs whose sign CUDA drops.
TEST_F(OracleDiff, PrintsTheTotalThatIsWorkedOutByHand) {
  const std::string out = Output("oracle diff cuda-13 hip-host --from float32 --to e4m3fn");
  EXPECT_THAT(out, HasSubstr("93323261 of 2^32"));
  EXPECT_THAT(out, HasSubstr("84934654 not counting NaN"));
}

// 19 to 35 intervals have three causes, which are said once each.
TEST_F(OracleDiff, GroupsIntervalsByCause) {
  const std::string out = Output("oracle diff cuda hip --to e4m3fn --csv diff.csv");
  EXPECT_EQ(out, Output("oracle diff cuda-13 hip-host --to e4m3fn"));
  std::vector<std::string> causes;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("- ")) causes.push_back(line);
  }
  ASSERT_EQ(causes.size(), 3u);
  EXPECT_EQ(causes[0],
            "- the exponent shift of hip-host wraps around: numbers far below its smallest value "
            "convert as if multiplied by 2^64 (32 intervals, 83886078 inputs)");
  EXPECT_EQ(causes[1],
            "- hip-host tests for overflow before it rounds: numbers that round to the largest "
            "value overflow (2 intervals, 1048576 inputs)");
  EXPECT_EQ(causes[2], "- NaN inputs: the codes of NaN differ (1 interval, 8388607 inputs)");
  EXPECT_THAT(out, HasSubstr("there is no profile of a device"));
  std::map<std::string, size_t> counts;
  for (const std::vector<std::string>& row : Rows("diff.csv")) ++counts[row.back()];
  EXPECT_EQ(counts,
            (std::map<std::string, size_t>{
                {"shift-wraps-b", 32}, {"early-overflow-b", 2}, {"nan-code", 1}}));
}

TEST_F(OracleDiff, OtherTargetsAreComparedByValue) {
  const std::string out = Output("oracle diff cuda hip --to e4m3fn --to-b e4m3fnuz");
  const Difference difference =
      Diff(Conversion("cuda-13", "e4m3fn"), Conversion("hip-host", "e4m3fnuz"), 0, DiffBy::kValue);
  EXPECT_THAT(out, HasSubstr("float32 to e4m3fn (a) and to e4m3fnuz (b), compared by value"));
  EXPECT_THAT(out,
              HasSubstr(fmt::format("{} intervals; {} of 2^32 inputs differ",
                                    difference.intervals.size(),
                                    difference.differing)));
  EXPECT_THAT(out, HasSubstr("0x00 0              0x01 0.0009765625"));
  const std::string same = Output("oracle diff torch-2.11 cuda --to e4m3fn --to-b e4m3fn");
  EXPECT_THAT(same, HasSubstr("\n0 intervals; 0 of 2^32"));  // only the sign of NaN differs
}

TEST_F(OracleDiff, SaysWhatBothSidesRestOn) {
  const std::string out = Output("oracle diff torch-2.11 torch-2.12 --to e4m3fn");
  EXPECT_THAT(out, HasSubstr("torch-2.11: measured"));
  EXPECT_THAT(out, HasSubstr("torch-2.12: third-party"));
}

TEST_F(OracleDiff, LimitSaysHowManyMoreThereAre) {
  const std::string out = Output("oracle diff ml-dtypes torch-2.11 --to e8m0fnu --limit 2");
  EXPECT_THAT(out, HasSubstr("254 more"));
  EXPECT_THAT(out, HasSubstr("256 intervals; 2134900737 of 2^32"));
}

TEST_F(OracleDiff, ExitCodeIsOneOnlyWhenAsked) {
  const std::string differ = "oracle diff cuda-13 torch-2.11 --to e4m3fn";
  EXPECT_EQ(Numsim(differ).exit_code, 0);
  EXPECT_EQ(Numsim(differ + " --fail-on-difference").exit_code, 1);
  const std::string same = "oracle diff torch-2.11 ml-dtypes --to e4m3fn --fail-on-difference";
  const Outcome outcome = Numsim(same);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("0 intervals; 0 of 2^32"));
}

TEST_F(OracleDiff, TakesFloat64) {
  const std::string out = Output("oracle diff cuda-13 ml-dtypes --from float64 --to e4m3fn");
  const Difference difference = Diff(Conversion("cuda-13", "e4m3fn", SourceType::kFloat64),
                                     Conversion("ml-dtypes", "e4m3fn", SourceType::kFloat64));
  EXPECT_THAT(out,
              HasSubstr(fmt::format(
                  "{} intervals; {} of 2^64", difference.intervals.size(), difference.differing)));
}

TEST_F(OracleDiff, StochasticProfilesAreComparedForTheWordGiven) {
  for (const uint32_t word : {0u, 0x89AB'CDEFu}) {
    const std::string out =
        Output(fmt::format("oracle diff ptx-rs amd-sr --to e4m3fn --random 0x{:X}", word));
    const Difference difference =
        Diff(Conversion("ptx-rs", "e4m3fn"), Conversion("amd-sr", "e4m3fn"), word);
    EXPECT_THAT(out, HasSubstr(fmt::format("; {} of 2^32", difference.differing)));
  }
}

TEST_F(OracleDiff, BadArgumentsAreNamed) {
  ExpectError("oracle diff cuda-13 nope --to e4m3fn", {"'nope'", "hip-host"});
  ExpectError("oracle diff cuda-13 torch --to e4m3fn", {"'torch'", "torch-2.11, torch-2.12"});
  ExpectError("oracle diff cuda-13 hip-host --to e4m3fn --to-b nope", {"nope"});
  ExpectError("oracle diff cuda-13 hip-host --to e4m3fn --to-b e8m0fnu", {"hip-host", "e8m0fnu"});
  ExpectError("oracle diff cuda-13 hip-host --to e8m0fnu", {"hip-host", "e8m0fnu", "e4m3fnuz"});
  ExpectError("oracle diff cuda-13 hip-host --to nope", {"nope"});
  ExpectError("oracle diff cuda-13 torch-2.11 --from float64 --to e4m3fn",
              {"torch-2.11", "float64"});
  ExpectError("oracle diff cuda-13 hip-host --from float16 --to e4m3fn", {"float16", "float64"});
  ExpectError("oracle diff cuda-13 hip-host", {"--to"});
  ExpectError("oracle diff cuda-13 --to e4m3fn", {"B"});
  ExpectError("oracle diff ptx-rs amd-sr --to e4m3fn --random zz", {"--random", "zz"});
  ExpectError("oracle diff cuda-13 hip-host --to e4m3fn --csv no/such/file.csv",
              {"no/such/file.csv"});
  ExpectError("oracle diff cuda-13 hip-host --from float64 --to e4m3fn --brute-force", {"float32"});
}

TEST_F(OracleDiff, ProfilesListsEachWithItsTargets) {
  const std::string out = Output("oracle profiles");
  const nlohmann::json json = nlohmann::json::parse(Output("oracle profiles --json"));
  ASSERT_EQ(json.size(), ProfileTable().size());
  size_t i = 0;
  for (const ProfileInfo& profile : ProfileTable()) {
    EXPECT_THAT(("\n" + out), HasSubstr(fmt::format("\n{} ", profile.name)));
    const nlohmann::json& entry = json[i++];
    EXPECT_EQ(entry["name"], profile.name);
    EXPECT_EQ(entry["evidence"], ToString(profile.evidence));
    EXPECT_EQ(entry["version"], profile.version);
    EXPECT_EQ(entry["source"], profile.source);
    for (const SourceType from : {SourceType::kFloat32, SourceType::kFloat64}) {
      const std::vector<std::string> targets = ProfileTargets(profile.name, from);
      const nlohmann::json& listed = entry["targets"];
      const std::string key(ToString(from));
      EXPECT_EQ(listed.value(key, std::vector<std::string>{}), targets) << profile.name;
    }
  }
  const std::string one = Output("oracle profiles hip-host");
  EXPECT_THAT(one, HasSubstr("hip-host"));
  EXPECT_THAT(one, Not(HasSubstr("qpytorch")));
  ExpectError("oracle profiles nope", {"'nope'"});
}

// Values at which implementations differ, and some thousand others.
std::vector<float> Values() {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0,
                               -0.0f,
                               448,
                               449,
                               464,
                               465,
                               480,
                               -449,
                               57344,
                               57345,
                               61440,
                               240,
                               248,
                               1e30f,
                               inf,
                               -inf,
                               std::bit_cast<float>(0x7FC0'0000u),
                               std::bit_cast<float>(0xFFC0'0000u),
                               0x1p-70f,
                               0x1p-10f,
                               1.0625f};
  for (uint32_t i = 0; i < 5000; ++i) {
    values.push_back(std::bit_cast<float>(0x3000'0000u + i * 0x1'2345u));
  }
  return values;
}

TEST_F(OracleDiff, CastAsAProfileEqualsTheLibrary) {
  const std::vector<float> values = Values();
  PutNpy("in.npy", ElementType::kF32, values);
  for (const auto& [profile, target] : {std::pair{"hip-host", "e4m3fn"},
                                        std::pair{"hip-host-satfinite", "e5m2fnuz"},
                                        std::pair{"cuda-13", "e8m0fnu"},
                                        std::pair{"qpytorch", "e5m2"},
                                        std::pair{"torch-2.11", "e8m0fnu"},
                                        std::pair{"ml-dtypes", "e2m1fn"},
                                        std::pair{"ml-dtypes", "bf16"},
                                        std::pair{"p3109-v4-satnone", "binary8p4se"}}) {
    EXPECT_EQ(Output(fmt::format("cast in.npy out.npy --format {} --profile {}", target, profile)),
              "");
    const Array codes = GetNpy("out.npy");
    const ProfileConversion conversion = Conversion(profile, target);
    ASSERT_EQ(codes.Elements(), values.size());
    const bool wide = codes.type == ElementType::kU16;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t code = wide ? codes.Data<uint16_t>()[i] : codes.Data<uint8_t>()[i];
      ASSERT_EQ(code, conversion.Encode(std::bit_cast<uint32_t>(values[i])))
          << profile << " to " << target << ": " << values[i];
    }
  }
}

TEST_F(OracleDiff, CastAsAStochasticProfileDependsOnTheSeedAlone) {
  PutNpy("in.npy", ElementType::kF32, std::vector<float>(10'003, 1.03f));
  const auto codes = [&](const std::string& options) {
    Output("cast in.npy out.npy --format e4m3fn --profile ptx-rs " + options);
    return Bytes(Path("out.npy"));
  };
  const std::string first = codes("--seed 1 --threads 1");
  EXPECT_EQ(codes("--seed 1 --threads 2"), first);
  EXPECT_EQ(codes("--seed 1"), first);
  EXPECT_NE(codes("--seed 2"), first);
  // 0.03 of a gap of 0.125: about 24 % become 1.125. Four deviations are 171 of 10,003.
  const Array array = GetNpy("out.npy");
  size_t up = 0;
  for (size_t i = 0; i < array.Elements(); ++i) {
    const uint32_t code = array.Data<uint8_t>()[i];
    ASSERT_TRUE(code == 0x38 || code == 0x39) << code;
    if (code == 0x39) ++up;
  }
  EXPECT_NEAR(static_cast<double>(up), 0.24 * 10'003, 171);
}

TEST_F(OracleDiff, ProfileTakesThePlaceOfRoundingAndOverflow) {
  PutNpy("in.npy", ElementType::kF32, std::vector<float>{1});
  const std::string cast = "cast in.npy out.npy --format e4m3fn --profile hip-host ";
  for (const char* const option :
       {"--rounding rne", "--overflow saturate", "--sr-bits 8", "--sr-variant a"}) {
    ExpectError(cast + option, {"--profile", std::string(option).substr(0, 6)});
  }
  ExpectError("cast in.npy out.npy --format e4m3fn --profile nope", {"nope", "cuda-13"});
  ExpectError("cast in.npy out.npy --format e8m0fnu --profile hip-host", {"hip-host", "e8m0fnu"});
  PutNpy("f64.npy", ElementType::kF64, std::vector<double>{1});
  ExpectError("cast f64.npy out.npy --format e4m3fn --profile torch-2.11",
              {"torch-2.11", "float64"});
  EXPECT_EQ(Names(), (std::vector<std::string>{"f64.npy", "in.npy"}));
}

TEST_F(OracleDiff, InspectShowsWhatAProfileGives) {
  const std::string one = Output("inspect e4m3fn 449 --profile hip-host");
  EXPECT_THAT(one, HasSubstr("hip-host"));
  EXPECT_THAT(one, HasSubstr("0x7F nan"));
  const std::string all = Output("inspect e4m3fn 449 --profile all");
  for (const ProfileInfo& profile : ProfileTable()) {
    const std::vector<std::string> targets = ProfileTargets(profile.name, SourceType::kFloat32);
    const bool defined = std::find(targets.begin(), targets.end(), "e4m3fn") != targets.end();
    EXPECT_EQ(all.find(fmt::format("profile {} ", profile.name)) != std::string::npos, defined)
        << profile.name;
  }
  const std::string random = Output("inspect e4m3fn 1.0625 --profile ptx-rs");
  EXPECT_THAT(random, HasSubstr("32768 of 2^16"));
  ExpectError("inspect e8m0fnu 1 --profile hip-host", {"hip-host", "e8m0fnu"});
  ExpectError("inspect e4m3fn 1 --profile nope", {"nope"});
}

}  // namespace
}  // namespace numsim::apps
