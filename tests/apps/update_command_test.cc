// `numsim update`: by hand, and bit for bit against the library.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/safetensors.h"
#include "numsim/updates/update_rule.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

using Floats = std::vector<float>;
using Shape = std::vector<size_t>;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Finite numbers of both signs around 1, the same for the same seed.
Floats Numbers(size_t n, uint32_t seed) {
  Floats numbers(n);
  uint32_t state = seed;
  for (float& x : numbers) {
    state = state * 1664525 + 1013904223;
    x = std::ldexp(static_cast<float>(static_cast<int32_t>(state)), -30);
  }
  return numbers;
}

Floats Rounded(const FormatSpec& format, Floats values) {
  FakeQuantize(
      MakeEncodePlan(format, {RoundingMode::kNearestEven}, Overflow::kSaturate), values, values);
  return values;
}

class UpdateCommand : public ProgramTest {
 protected:
  void PutFloats(const std::string& name, const Floats& values, Shape shape = {}) const {
    PutNpy(name, ElementType::kF32, values, std::move(shape));
  }
  Floats GetFloats(const std::string& name) const {
    const Array array = GetNpy(name);
    EXPECT_EQ(array.type, ElementType::kF32);
    return Floats(array.Data<float>(), array.Data<float>() + array.Elements());
  }

  // The figures that `update w.npy u.npy out.npy OPTIONS` prints, by name.
  std::map<std::string, std::string> Figures(const std::string& options, int exit_code = 0) const {
    const Outcome outcome = Numsim("update w.npy u.npy out.npy " + options);
    EXPECT_EQ(outcome.exit_code, exit_code) << options << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << options;
    std::map<std::string, std::string> figures;
    for (const std::string& line : outcome.Lines()) {
      const std::vector<std::string> words = Words(line);
      EXPECT_EQ(words.size(), 2u) << line;
      figures[words.at(0)] = words.at(1);
    }
    return figures;
  }
  static void ExpectSameBits(const Floats& got, const Floats& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
          << "element " << i << ": " << got[i] << ", expected " << expected[i];
    }
  }
};

// The note's example: 0.75 + 0.03 is nearer to 0.75 than to 0.8125; 0.032 is beyond the midpoint.
TEST_F(UpdateCommand, TakesTheStepOfTheNoteByHand) {
  PutFloats("w.npy", {0.75f, 0.75f, -0.75f});
  PutFloats("u.npy", {30, 32, -32});
  const auto figures = Figures("--format e4m3fn --rule naive --lr 0.001");
  ExpectSameBits(GetFloats("out.npy"), {0.75f, 0.8125f, -0.8125f});
  EXPECT_EQ(figures.at("status"), "ok");
  EXPECT_EQ(figures.at("moved"), "2");
  EXPECT_EQ(figures.at("saturated"), "0");
  EXPECT_EQ(figures.at("achieved_norm"), FormatCell(std::sqrt(2 * 0.0625 * 0.0625)));
  EXPECT_EQ(figures.at("achieved_projection"), FormatCell(4.0));
  EXPECT_EQ(figures.at("alpha"), "0.001");
  EXPECT_EQ(figures.at("passes"), "0");
  EXPECT_EQ(figures.at("seed"), "0");
  EXPECT_EQ(figures.at("step"), "0");
  EXPECT_EQ(figures.size(), 13u);
}

TEST_F(UpdateCommand, WritesCodesWhereItReadCodes) {
  PutNpy("w.npy", ElementType::kU8, std::vector<uint8_t>{0x34, 0x34, 0xB4}, {1, 3});
  PutFloats("u.npy", {30, 32, -32}, {1, 3});
  Figures("--format e4m3fn --rule naive --lr 0.001");
  const Array out = GetNpy("out.npy");
  EXPECT_EQ(out.type, ElementType::kU8);
  EXPECT_EQ(out.shape, (Shape{1, 3}));
  EXPECT_EQ(std::vector<uint8_t>(out.Data<uint8_t>(), out.Data<uint8_t>() + 3),
            (std::vector<uint8_t>{0x34, 0x35, 0xB5}));
}

TEST_F(UpdateCommand, WritesCodesOfValuesWithCodes) {
  PutFloats("w.npy", {1, -2});
  PutFloats("u.npy", {1, 1});
  Figures("--format bf16 --rule naive --lr 1 --codes");
  const Array out = GetNpy("out.npy");
  ASSERT_EQ(out.type, ElementType::kU16);
  EXPECT_EQ(out.Data<uint16_t>()[0], 0x4000);
  EXPECT_EQ(out.Data<uint16_t>()[1], 0xBF80);
}

// Every rule that keeps no state, with and without what it reads besides.
TEST_F(UpdateCommand, EqualsTheLibraryOnMatrices) {
  const Format format = ParseFormat("e4m3fn");
  const size_t rows = 6, cols = 50;
  const Floats w = Rounded(format.spec, Numbers(rows * cols, 1)), u = Numbers(rows * cols, 2);
  PutFloats("w.npy", w, {rows, cols});
  PutFloats("u.npy", u, {rows, cols});
  for (const char* const text : {"naive",
                                 "stochastic:16",
                                 "note-as-printed",
                                 "norm-matched@row",
                                 "projection-matched:none@block:16"}) {
    const UpdateRule rule = ParseUpdateRule(text);
    const MatrixShape shape{rows, cols};
    const WeightUpdate step{format.spec, HostMatrix(w, shape), HostMatrix(u, shape), 0.01f, 0.1f};
    UpdateState state;
    Floats expected(w.size());
    const UpdateOutcome outcome =
        ApplyUpdate(rule, step, {7, 3}, state, HostMatrix(expected, shape));
    const auto figures =
        Figures(std::string("--format e4m3fn --lr 0.01 --weight-decay 0.1 --seed 7 --step 3 ") +
                "--rule " + text);
    ExpectSameBits(GetFloats("out.npy"), expected);
    EXPECT_EQ(figures.at("status"), ToString(outcome.status)) << text;
    EXPECT_EQ(figures.at("moved"), FormatCell(outcome.moved)) << text;
    EXPECT_EQ(figures.at("achieved_norm"), FormatCell(outcome.achieved_norm)) << text;
    EXPECT_EQ(figures.at("target_projection"), FormatCell(outcome.target_projection)) << text;
    EXPECT_EQ(figures.at("alpha"), fmt::format("{}", outcome.alpha)) << text;
    EXPECT_EQ(figures.at("matched_target"), FormatCell(outcome.matched_target)) << text;
    EXPECT_EQ(figures.at("passes"), FormatCell(outcome.passes)) << text;
  }
}

TEST_F(UpdateCommand, RandomBitsDependOnSeedAndStepAlone) {
  PutFloats("w.npy", Floats(200, 1.0f));
  PutFloats("u.npy", Floats(200, 0.05f));
  const std::string options = "--format e4m3fn --rule stochastic --lr 1 ";
  Figures(options + "--seed 1 --step 2");
  const Floats first = GetFloats("out.npy");
  Figures(options + "--seed 1 --step 2 --threads 2 --backend scalar");
  ExpectSameBits(GetFloats("out.npy"), first);
  Figures(options + "--seed 1 --step 3");
  EXPECT_NE(GetFloats("out.npy"), first);
  Figures(options + "--seed 2 --step 2");
  EXPECT_NE(GetFloats("out.npy"), first);
}

TEST_F(UpdateCommand, SolversAgreeButForTheirPasses) {
  PutFloats("w.npy", Rounded(ParseFormat("bf16").spec, Numbers(500, 3)));
  PutFloats("u.npy", Numbers(500, 4));
  const std::string options = "--format bf16 --rule norm-matched --lr 1e-3 --solver ";
  const auto by_selection = Figures(options + "selection");
  const Floats selection = GetFloats("out.npy");
  const auto by_bisection = Figures(options + "bisection");
  ExpectSameBits(GetFloats("out.npy"), selection);
  EXPECT_EQ(by_bisection.at("alpha"), by_selection.at("alpha"));
  EXPECT_NE(by_bisection.at("passes"), by_selection.at("passes"));
}

TEST_F(UpdateCommand, ToleranceAndIterationsReachTheNotesRule) {
  PutFloats("w.npy", Rounded(ParseFormat("bf16").spec, Numbers(500, 3)));
  PutFloats("u.npy", Numbers(500, 4));
  const std::string options = "--format bf16 --rule note-as-printed --lr 1e-4 ";
  EXPECT_EQ(Figures(options + "--tolerance 0 --iterations 5").at("passes"), "5");
  EXPECT_EQ(Figures(options + "--tolerance 0").at("passes"), "32");
  EXPECT_NE(Figures(options).at("passes"), "32");
}

// Each rule with a state, in two steps through files against two steps in memory.
TEST_F(UpdateCommand, CarriesTheStateThroughAFile) {
  const size_t rows = 4, cols = 30;
  const Format format = ParseFormat("bf16");
  const Floats initial = Numbers(rows * cols, 5), u = Numbers(rows * cols, 6);
  PutFloats("u.npy", u, {rows, cols});
  for (const char* const text :
       {"master-fp32", "master-fp16-scaled@row", "split-master", "kahan", "kahan:e4m3fn"}) {
    const UpdateRule rule = ParseUpdateRule(text);
    Floats w(rows * cols);
    const MatrixShape shape{rows, cols};
    const MatrixSpan<float> matrix = HostMatrix(w, shape);
    UpdateState state = StartUpdates(rule, format.spec, HostMatrix(initial, shape), matrix);
    for (uint64_t t : {0, 1}) {
      const WeightUpdate step{format.spec, matrix, HostMatrix(u, shape), 1e-3f, 0};
      ApplyUpdate(rule, step, {0, t}, state, matrix);
    }
    const std::span<const float> kept = state.values.Span(), scales = state.scales.Span();
    const std::string options = fmt::format("--format bf16 --lr 1e-3 --rule {} ", text);
    PutFloats("w.npy", initial, {rows, cols});
    Figures(options + "--step 0 --round-weights --state-out s.safetensors");
    std::filesystem::rename(Path("out.npy"), Path("w.npy"));
    Figures(options + "--step 1 --state-in s.safetensors --state-out s.safetensors");
    ExpectSameBits(GetFloats("out.npy"), w);
    const SafetensorsFile file(Path("s.safetensors"));
    if (!kept.empty()) {
      const Array values = file.Read("values");
      EXPECT_EQ(values.shape, (Shape{rows, cols}));
      ExpectSameBits(Floats(values.Data<float>(), values.Data<float>() + rows * cols),
                     Floats(kept.begin(), kept.end()));
    }
    EXPECT_EQ(file.Tensors().size(),
              size_t{!kept.empty()} + size_t{!state.words.Span().empty()} + size_t{!scales.empty()})
        << text;
  }
}

// A process that is killed between the two renames of an update in place leaves new weights beside
// the old state. The step must not be taken twice.
TEST_F(UpdateCommand, RefusesTheStateOfOtherWeights) {
  PutFloats("w.npy", {1, 2, 3});
  PutFloats("u.npy", {1, 1, 1});
  const std::string step = "update w.npy u.npy w.npy --format bf16 --rule kahan --lr 0.5 ";
  Output(step + "--state-out s.safetensors");
  const std::string old_state = Bytes(Path("s.safetensors"));
  const std::string again = step + "--state-in s.safetensors --state-out s.safetensors";
  Output(again + " --codes");
  const std::string weights = Bytes(Path("w.npy")), state = Bytes(Path("s.safetensors"));
  Output(again);  // codes and values are the same weights
  Put("w.npy", weights);
  Put("s.safetensors", old_state);
  const Outcome outcome = Numsim(again);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("s.safetensors: belongs to other weights"));
  EXPECT_EQ(Bytes(Path("w.npy")), weights);
  Put("s.safetensors", state);
  Output(again);
}

// 1 + 0.002: bf16 rounds it to 1, the master keeps it, and after two steps the weight moves.
TEST_F(UpdateCommand, AMasterStartsFromTheWeightsAsGiven) {
  PutFloats("w.npy", {1.0035f});
  PutFloats("u.npy", {1});
  Figures("--format bf16 --rule master-fp32 --lr 0.0005 --round-weights --state-out s.safetensors");
  ExpectSameBits(GetFloats("out.npy"), {1.0078125f});
  PutFloats("w.npy", {1});
  Figures("--format bf16 --rule master-fp32 --lr 0.0005 --state-out s.safetensors");
  ExpectSameBits(GetFloats("out.npy"), {1});
}

TEST_F(UpdateCommand, PrintsJson) {
  PutFloats("w.npy", {0.75f, 2}, {2, 1});
  PutFloats("u.npy", {32, 0}, {2, 1});
  const std::string out = Output(
      "update w.npy u.npy out.npy --format e4m3fn --rule norm-matched@row --lr 0.001 --json");
  EXPECT_THAT(out, HasSubstr("{\n  \"status\": \""));
  EXPECT_THAT(out, HasSubstr("\"moved\": "));
  EXPECT_THAT(out, HasSubstr("\"matched\": null"));  // two groups
}

TEST_F(UpdateCommand, WritesTheOutcomeOfEachGroup) {
  PutFloats("w.npy", {0.75f, 0.75f, 2, 2}, {2, 2});
  PutFloats("u.npy", {32, 32, 0, 0}, {2, 2});
  const auto figures =
      Figures("--format e4m3fn --rule norm-matched@row --lr 0.002 --groups groups.csv");
  const Table groups = ReadCsv(Path("groups.csv"));
  ASSERT_EQ(groups.rows.size(), 2u);
  // The group's number, and all figures except seed and step, which are those of the whole step.
  EXPECT_EQ(groups.columns.size(), 1 + figures.size() - 2);
  EXPECT_EQ(groups.Text(0, "group"), "0");
  EXPECT_EQ(groups.Text(0, "moved"), "2");
  EXPECT_EQ(groups.Text(1, "moved"), "0");
  EXPECT_EQ(groups.Text(1, "status"), "zero-update");
}

// One number of a row belongs to one group; a vector is one row.
TEST_F(UpdateCommand, AVectorIsOneRowAndATensorHasTheRowsOfItsFirstDimension) {
  PutFloats("w.npy", {1, 1, 1, 1});
  PutFloats("u.npy", {1, 1, 1, 1});
  const std::string options = "--format e4m3fn --rule norm-matched@row --lr 1 --groups g.csv";
  Figures(options);
  EXPECT_EQ(ReadCsv(Path("g.csv")).rows.size(), 1u);
  PutFloats("w.npy", {1, 1, 1, 1}, {2, 1, 2});
  PutFloats("u.npy", {1, 1, 1, 1}, {2, 1, 2});
  Figures(options);
  EXPECT_EQ(ReadCsv(Path("g.csv")).rows.size(), 2u);
  EXPECT_EQ(GetNpy("out.npy").shape, (Shape{2, 1, 2}));
}

TEST_F(UpdateCommand, NonfiniteInputMovesNothingAndIsExitCodeOne) {
  PutFloats("w.npy", {1, 2});
  PutFloats("u.npy", {1, kInf});
  const auto figures = Figures("--format bf16 --rule stochastic --lr 1", 1);
  EXPECT_EQ(figures.at("status"), "nonfinite");
  ExpectSameBits(GetFloats("out.npy"), {1, 2});
}

// 0x7F81 is a signalling NaN of bf16, which decoding and encoding would not give back.
TEST_F(UpdateCommand, CodesThatDoNotMoveStayAsTheyAre) {
  PutNpy("w.npy", ElementType::kU16, std::vector<uint16_t>{0x3F80, 0x7F81, 0x8000});
  PutFloats("u.npy", {1, 1, 1});
  Figures("--format bf16 --rule naive --lr 1", 1);
  const Array out = GetNpy("out.npy");
  EXPECT_EQ(std::vector<uint16_t>(out.Data<uint16_t>(), out.Data<uint16_t>() + 3),
            (std::vector<uint16_t>{0x3F80, 0x7F81, 0x8000}));
}

TEST_F(UpdateCommand, ReplacesItsInput) {
  PutFloats("w.npy", {1, 2});
  PutFloats("u.npy", {1, 2});
  Output("update w.npy u.npy w.npy --format bf16 --rule naive --lr 1");
  ExpectSameBits(GetFloats("w.npy"), {2, 4});
}

TEST_F(UpdateCommand, LearningRateZeroIsTheIdentity) {
  const Floats w = Rounded(ParseFormat("e5m2").spec, Numbers(40, 8));
  PutFloats("w.npy", w);
  PutFloats("u.npy", Numbers(40, 9));
  EXPECT_EQ(Figures("--format e5m2 --rule projection-matched --lr 0").at("status"), "zero-update");
  ExpectSameBits(GetFloats("out.npy"), w);
}

class UpdateErrors : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    PutNpy("w.npy", ElementType::kF32, Floats{1, 2, 3, 4}, {2, 2});
    PutNpy("u.npy", ElementType::kF32, Floats{1, 1, 1, 1}, {2, 2});
    PutNpy("vector.npy", ElementType::kF32, Floats{1, 1, 1, 1});
    PutNpy("off.npy", ElementType::kF32, Floats{1, 2, 3, 1.03f}, {2, 2});
    PutNpy("u8.npy", ElementType::kU8, std::vector<uint8_t>{1, 2, 3, 0x1F}, {2, 2});
    PutNpy("u16.npy", ElementType::kU16, std::vector<uint16_t>(4, 1), {2, 2});
    PutNpy("wide.npy", ElementType::kF64, std::vector<double>(4, 0.1), {2, 2});
    PutNpy("least.npy", ElementType::kU8, std::vector<uint8_t>{1, 2, 0x80, 3}, {2, 2});
    PutNpy("out.npy", ElementType::kF32, Floats{42});
    std::filesystem::create_directory(Path("directory"));
    Put("text.safetensors", "hello");
    Output("update w.npy u.npy first.npy --format bf16 --rule kahan --lr 1 --state-out " +
           std::string("kahan.safetensors"));
    Output("update vector.npy vector.npy first.npy --format bf16 --rule kahan --lr 1 " +
           std::string("--state-out vector.safetensors"));
  }
  static std::vector<std::string> Update(const std::string& words) {
    return Words("update " + words + " --format e4m3fn --rule naive --lr 1");
  }
  static std::vector<std::string> Naive(const std::string& words) {
    return Words("update w.npy u.npy out.npy --format e4m3fn --rule naive " + words);
  }
  static std::vector<std::string> Kahan(const std::string& words) {
    return Words("update w.npy u.npy out.npy --format bf16 --lr 1 " + words);
  }
  // A state file of that header and four bytes of zeros for each "0000" in `data`.
  void PutState(const std::string& name, std::string json, size_t data_bytes) const {
    json.resize((json.size() + 7) / 8 * 8, ' ');
    std::string length(8, '\0');
    length[0] = static_cast<char>(json.size() & 0xFF);
    length[1] = static_cast<char>(json.size() >> 8);
    Put(name, length + json + std::string(data_bytes, '\0'));
  }
};

TEST_F(UpdateErrors, Arguments) {
  Expect(std::vector<BadCase>{
      {{"update", "w.npy", "u.npy"}, {"OUT"}},
      {{"update", "w.npy", "u.npy", "out.npy", "--lr", "1", "--rule", "naive"}, {"--format"}},
      {{"update", "w.npy", "u.npy", "out.npy", "--lr", "1", "--format", "bf16"}, {"--rule"}},
      {Naive(""), {"--lr"}},
      {Naive("--lr -1"), {"--lr", "-1"}},
      {Naive("--lr nan"), {"--lr", "nan"}},
      {Naive("--lr inf"), {"--lr", "inf"}},
      {Naive("--lr 1e39"), {"--lr", "1e39"}},
      {Naive("--lr 1x"), {"--lr", "1x"}},
      {Naive("--lr 1 --weight-decay -inf"), {"--weight-decay", "-inf"}},
      {Naive("--lr 1 --solver newton"), {"--solver", "newton", "selection"}},
      {Naive("--lr 1 --iterations 0"), {"--iterations"}},
      {Naive("--lr 1 --tolerance -1"), {"--tolerance"}},
      {Naive("--lr 1 --seed -1"), {"--seed", "-1"}},
      {Naive("--lr 1 --step 9223372036854775808"), {"--step"}},
      {Words("update w.npy u.npy out.npy --format nope --rule naive --lr 1"), {"'nope'"}},
      {Words("update w.npy u.npy out.npy --format bf16 --rule nope --lr 1"), {"nope", "naive"}},
      {Words("update w.npy u.npy out.npy --format e4m3fn --rule split-master --lr 1"),
       {"split-master", "bf16"}},
  });
}

TEST_F(UpdateErrors, FilesAndElements) {
  Expect(std::vector<BadCase>{
      {Update("missing.npy u.npy out.npy"), {"missing.npy"}},
      {Update("w.npy missing.npy out.npy"), {"missing.npy"}},
      {Update("w.npy u.npy directory"), {"directory"}},
      {Update("w.npy u.npy missing/out.npy"), {"missing/out.npy"}},
      {Update("w.npy u.npy out.npy --groups missing/g.csv"), {"missing/g.csv"}},
      {Update("u16.npy u.npy out.npy"), {"u16.npy", "uint16", "uint8", "float32", "e4m3fn"}},
      {Update("wide.npy u.npy out.npy"), {"wide.npy", "float64"}},
      {Update("w.npy wide.npy out.npy"), {"wide.npy", "float64"}},
      {Update("w.npy u8.npy out.npy"), {"u8.npy", "uint8"}},
      {Update("w.npy vector.npy out.npy"), {"vector.npy", "(4,)", "w.npy", "(2, 2)"}},
      {Update("off.npy u.npy out.npy"),
       {"off.npy", "element 3", "1.03", "e4m3fn", "--round-weights"}},
      {Update("u8.npy u.npy out.npy --round-weights"), {"--round-weights", "u8.npy", "codes"}},
      {Words("update u8.npy u.npy out.npy --format e2m1fn --rule naive --lr 1"),
       {"u8.npy", "element 3", "0x1f", "4 bits"}},
      {Words("update least.npy u.npy out.npy --format int8 --rule naive --lr 1"),
       {"least.npy", "element 2", "-128", "int8"}},
  });
}

TEST_F(UpdateErrors, WhereAStateGoes) {
  Expect(std::vector<BadCase>{
      {Naive("--lr 1 --state-in kahan.safetensors"), {"--state-in", "naive"}},
      {Naive("--lr 1 --state-out s.safetensors"), {"--state-out", "naive"}},
      {Kahan("--rule kahan"), {"--state-out", "kahan"}},
      {Kahan("--rule kahan --state-out missing/s.safetensors"), {"missing/s.safetensors"}},
      {Kahan("--rule kahan --state-out out.npy"), {"--state-out", "OUT"}},
      {Kahan("--rule kahan --state-out ./out.npy"), {"--state-out", "OUT"}},
      {Kahan("--rule kahan --state-out s.csv --groups s.csv"), {"--groups", "--state-out"}},
      {Kahan("--rule naive --groups out.npy"), {"--groups", "OUT"}},
      {Kahan("--rule kahan --state-out s.safetensors --round-weights --state-in "
             "kahan.safetensors"),
       {"--round-weights", "--state-in"}},
  });
}

TEST_F(UpdateErrors, StatesThatDoNotFit) {
  const std::string kahan = "--rule kahan --state-out s.safetensors --state-in ";
  const std::string owner = R"("__metadata__":{"rule":"kahan","format":"bf16"})";
  PutState("none.safetensors", "{" + owner + "}", 0);
  PutState("words.safetensors",
           "{" + owner +
               R"(,"values":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})"
               R"(,"words":{"dtype":"U16","shape":[1],"data_offsets":[16,18]}})",
           18);
  PutState("half.safetensors",
           "{" + owner + R"(,"values":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}})",
           8);
  PutState("anyone.safetensors",
           R"({"values":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
           16);
  Expect(std::vector<BadCase>{
      {Kahan(kahan + "missing.safetensors"), {"missing.safetensors"}},
      {Kahan(kahan + "text.safetensors"), {"text.safetensors"}},
      {Kahan(kahan + "vector.safetensors"), {"vector.safetensors", "'values'", "(4,)", "(2, 2)"}},
      {Kahan("--rule kahan:e4m3fn --state-out s.safetensors --state-in kahan.safetensors"),
       {"kahan.safetensors", "rule", "kahan:e4m3fn"}},
      {Words("update w.npy u.npy out.npy --format fp16 --lr 1 " + kahan + "kahan.safetensors"),
       {"kahan.safetensors", "format", "bf16", "fp16"}},
      {Kahan(kahan + "none.safetensors"), {"none.safetensors", "'values'", "missing"}},
      {Kahan(kahan + "words.safetensors"), {"words.safetensors", "'words'"}},
      {Kahan(kahan + "half.safetensors"), {"half.safetensors", "'values'", "float16", "float32"}},
      {Kahan(kahan + "anyone.safetensors"), {"anyone.safetensors", "'rule'"}},
  });
}

}  // namespace
}  // namespace numsim::apps
