// `numsim stats`: a row per tensor and format, equal to the library's measures.
#include <cmath>
#include <cstring>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/shared/safetensors_writer.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/rounding/encode.h"
#include "tests/apps/program.h"
#include "tests/support/doc_page.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

const std::vector<float> kValues = {0.78f, -3, 0.001f, 500, 1e-9f, 0, 2.5f, -0.1f};

class StatsCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    PutNpy("w.npy", ElementType::kF32, kValues, {2, 4});
  }

  // t.safetensors with three tensors. In e4m3fn z is exact except for one number that becomes 0; the
  // numbers of x have errors of 1 to 4, y two of 0.03 and two that become 0.
  void PutTensors() const;

  Table Csv(const std::string& arguments) const {
    Put("table.csv", Output("stats " + arguments + " --csv -"));
    return ReadCsv(Path("table.csv"));
  }
};

void StatsCommand::PutTensors() const {
  std::vector<std::pair<std::string, Array>> tensors;
  const auto add = [&](const char* name, const std::vector<float>& values) {
    Array array{ElementType::kF32, {values.size()}, {}};
    array.bytes.resize(values.size() * sizeof(float));
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    tensors.emplace_back(name, std::move(array));
  };
  add("z", {128, 128, 128, 0x1p-12f});
  add("x", {100, 101, 102, 103});
  add("y", {0.72f, 0x1p-10f, 0x1p-10f, 0.72f});
  WriteSafetensors(Path("t.safetensors"), tensors);
}

TEST_F(StatsCommand, RowsEqualTheLibrary) {
  const Table table = Csv("w.npy --format e4m3fn,bf16,int8 --granularity row");
  ASSERT_EQ(table.rows.size(), 3u);
  const char* const names[] = {"e4m3fn", "bf16", "int8"};
  for (size_t i = 0; i < 3; ++i) {
    QuantizeOptions options;
    options.format = FindFormat(names[i])->spec;
    options.layout = {Granularity::kRow, 0};
    options.scale_rule = UsualScaleRule(options.format);
    const ErrorMeasures e = QuantizationError(kValues, {2, 4}, options);
    EXPECT_EQ(table.Text(i, "tensor"), "w");
    EXPECT_EQ(table.Text(i, "dtype"), "float32");
    EXPECT_EQ(table.Text(i, "shape"), "2x4");
    EXPECT_EQ(table.Text(i, "elements"), "8");
    EXPECT_EQ(table.Text(i, "nonfinite"), "0");
    EXPECT_EQ(table.Text(i, "absmax"), "500");
    EXPECT_EQ(table.Text(i, "format"), names[i]);
    EXPECT_EQ(table.Text(i, "granularity"), "row");
    EXPECT_EQ(table.Text(i, "sqnr_db"), FormatCell(e.SqnrDb()));
    EXPECT_EQ(table.Text(i, "relative_error"), FormatCell(e.RelativeError()));
    EXPECT_EQ(table.Text(i, "max_error"), FormatCell(e.max_error));
    EXPECT_EQ(table.Text(i, "mean_error"), FormatCell(e.MeanError()));
    EXPECT_EQ(table.Text(i, "underflow_share"), FormatCell(e.UnderflowShare()));
    EXPECT_EQ(table.Text(i, "overflow_share"), FormatCell(e.OverflowShare()));
  }
  EXPECT_EQ(table.Text(0, "scale"), "absmax");
  EXPECT_EQ(table.Text(1, "scale"), "none");
}

// A plain cast, measured here by hand.
TEST_F(StatsCommand, PlainCastHasTheErrorOfEachElement) {
  const Table table = Csv("w.npy --format e4m3fn --scale none");
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  double signal = 0, noise = 0, largest = 0, sum = 0;
  for (const float x : kValues) {
    const double y =
        static_cast<double>(Decode(format, Encode(format, x, Rounding{}, Overflow::kSaturate)));
    const double error = y - static_cast<double>(x);
    signal += static_cast<double>(x) * static_cast<double>(x);
    noise += error * error;
    sum += error;
    largest = std::max(largest, std::abs(error));
  }
  EXPECT_NEAR(table.Number(0, "sqnr_db"), 10 * std::log10(signal / noise), 1e-9);
  EXPECT_NEAR(table.Number(0, "relative_error"), std::sqrt(noise / signal), 1e-12);
  EXPECT_EQ(table.Number(0, "max_error"), largest);
  EXPECT_NEAR(table.Number(0, "mean_error"), sum / 8, 1e-12);
  EXPECT_EQ(table.Number(0, "underflow_share"), 1.0 / 8);  // 1e-9; 0.001 is above half of 2^-9
  EXPECT_EQ(table.Number(0, "overflow_share"), 1.0 / 8);   // 500
}

TEST_F(StatsCommand, PrintsATableWithALinePerFormat) {
  const std::string out = Output("stats w.npy --format e4m3fn,bf16");
  EXPECT_THAT(out, HasSubstr("e4m3fn*"));
  EXPECT_THAT(out, HasSubstr("bf16 "));
  EXPECT_THAT(out, HasSubstr("2x4"));
}

TEST_F(StatsCommand, CsvFileEqualsCsvOnStdout) {
  const std::string printed = Output("stats w.npy --csv -");
  const std::string table = Output("stats w.npy");
  EXPECT_EQ(Output("stats w.npy --csv out.csv"), table);
  EXPECT_EQ(Bytes(Path("out.csv")), printed);
  EXPECT_EQ(Names(), (std::vector<std::string>{"out.csv", "w.npy"}));
}

TEST_F(StatsCommand, GranularityAndScaleAreInTheRows) {
  const Table table = Csv("w.npy --format e2m1fn --granularity block:2 --scale e8m0");
  EXPECT_EQ(table.Text(0, "granularity"), "block:2");
  EXPECT_EQ(table.Text(0, "scale"), "e8m0");
}

// Words for formats with scales have their own granularity and rule, whatever the options say.
TEST_F(StatsCommand, WordsForFormatsWithScalesBringThem) {
  const Table words = Csv("w.npy --format mxfp4,e4m3fn,NVFP4 --granularity row");
  ASSERT_EQ(words.rows.size(), 3u);
  const char* const options[] = {"e4m3fn --granularity row",
                                 "e2m1fn --granularity block:32 --scale e8m0",
                                 "e2m1fn --granularity block:16 --scale nvfp4"};
  const char* const names[] = {"e4m3fn", "mxfp4", "nvfp4"};
  for (size_t i = 0; i < 3; ++i) {
    const Table plain = Csv(std::string("w.npy --format ") + options[i]);
    for (const char* const column : {"granularity", "scale", "sqnr_db", "relative_error"}) {
      EXPECT_EQ(words.Text(i, column), plain.Text(0, column)) << names[i] << " " << column;
    }
    EXPECT_EQ(words.Text(i, "format"), names[i]);
  }
  EXPECT_EQ(Csv("w.npy --format mxfp8").rows.size(), 1u);
}

TEST_F(StatsCommand, CustomFormatsKeepTheirCommas) {
  const Table table = Csv("w.npy --format e3m4:inf=none,nan=none,bf16");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.Text(0, "format"), "e3m4:inf=none,nan=none");
}

TEST_F(StatsCommand, NonfiniteElementsAreCounted) {
  PutNpy("n.npy", ElementType::kF32, std::vector<float>{1, INFINITY, NAN, 2});
  const Table table = Csv("n.npy --format bf16");
  EXPECT_EQ(table.Text(0, "nonfinite"), "2");
  EXPECT_EQ(table.Text(0, "shape"), "4");
  EXPECT_EQ(table.Number(0, "max_error"), 0);
}

// Largest value 448, next on the grid 480: the middle is 464. Least value 2^-9: half of it is a tie,
// which goes to the even code 0.
TEST_F(StatsCommand, SharesCountFromTheirLimitsOn) {
  PutNpy("limits.npy",
         ElementType::kF32,
         std::vector<float>{463.9f, 464, -1000, 0x1p-10f, 0x1.1p-10f, 0, NAN, 448, 1, 1, 1});
  const Table table = Csv("limits.npy --format e4m3fn --scale none");
  EXPECT_EQ(table.Number(0, "overflow_share"), 2.0 / 10);
  EXPECT_EQ(table.Number(0, "underflow_share"), 1.0 / 10);
  EXPECT_EQ(table.Number(0, "max_error"), 1000 - 448);
}

TEST_F(StatsCommand, ErrorsHaveTheTensorsUnit) {
  // One scale, 2^10: 3 is scaled to 3 x 2^-10, the middle of e4m3fn's numbers 2^-9 and 2^-8, and
  // becomes 2^-8, the even one, which is 4.
  PutNpy("unit.npy", ElementType::kF32, std::vector<float>{448 * 1024, 3});
  const Table table = Csv("unit.npy --format e4m3fn");
  EXPECT_EQ(table.Number(0, "max_error"), 1);
  EXPECT_NEAR(table.Number(0, "relative_error"), 1.0 / (448 * 1024), 1e-12);
  EXPECT_NEAR(table.Number(0, "sqnr_db"), 20 * std::log10(448.0 * 1024), 1e-6);
}

// A vector is one row, and each of its elements a column.
TEST_F(StatsCommand, VectorHasOneScalePerRow) {
  PutNpy("v.npy", ElementType::kF32, std::vector<float>{448, 3.3f, 0.011f});
  const Table table = Csv("v.npy --format e4m3fn --granularity tensor,row,column");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.Text(0, "sqnr_db"), table.Text(1, "sqnr_db"));
  EXPECT_GT(table.Number(0, "max_error"), 0.01);
  EXPECT_LT(table.Number(2, "max_error"), 1e-6);
}

TEST_F(StatsCommand, ListOfGranularitiesHasTheRowsOfEach) {
  const Table list = Csv("w.npy --format e4m3fn,bf16 --granularity tensor,row,block:2");
  ASSERT_EQ(list.rows.size(), 6u);
  const char* const names[] = {"tensor", "row", "block:2"};
  for (size_t i = 0; i < 3; ++i) {
    const Table one = Csv(std::string("w.npy --format e4m3fn,bf16 --granularity ") + names[i]);
    EXPECT_EQ(list.columns, one.columns);
    EXPECT_EQ(list.rows[2 * i], one.rows[0]);
    EXPECT_EQ(list.rows[2 * i + 1], one.rows[1]);
  }
  const std::string out = Output("stats w.npy --format e4m3fn,bf16 --granularity tensor,row");
  const size_t cast = out.find("bf16 ");
  EXPECT_THAT(out.substr(cast), HasSubstr("bf16         - "));
  EXPECT_EQ(out.find("bf16 ", cast + 1), std::string::npos) << out;  // the same under each
}

// The relative error of x is 0.027, that of y 0.042, that of z almost 0.
TEST_F(StatsCommand, SortPutsTheWorstFirst) {
  PutTensors();
  const auto names = [&](const std::string& order) {
    const Table table = Csv("t.safetensors --format e4m3fn --scale none --sort " + order);
    std::string text;
    for (size_t row = 0; row < table.rows.size(); ++row) text += table.Text(row, "tensor");
    return text;
  };
  EXPECT_EQ(names("file"), "zxy");
  EXPECT_EQ(names("name"), "xyz");
  EXPECT_EQ(names("sqnr"), "yxz");
  EXPECT_EQ(names("error"), "yxz");
  EXPECT_EQ(names("max-error"), "xyz");
  EXPECT_EQ(names("underflow"), "yzx");
  EXPECT_EQ(names("absmax"), "zxy");
  EXPECT_EQ(Output("stats t.safetensors --csv - --sort file"),
            Output("stats t.safetensors --csv -"));
}

TEST_F(StatsCommand, LastBlockHasTheWorstTensorOfEachFormat) {
  PutTensors();
  const std::string out =
      Output("stats t.safetensors --format e4m3fn,bf16 --granularity tensor,row --scale none");
  const size_t block = out.find("\nworst tensor of each format and granularity\n");
  ASSERT_NE(block, std::string::npos) << out;
  EXPECT_THAT(out.substr(block), ::testing::ContainsRegex("e4m3fn +- +[0-9.]+  y\n"));
  EXPECT_THAT(out.substr(block), HasSubstr("    SQNR dB  tensor\n"));
  const std::string by_size =
      Output("stats t.safetensors --format e4m3fn --scale none --sort absmax");
  EXPECT_THAT(by_size, ::testing::ContainsRegex("e4m3fn +- +128  z\n"));
  const std::string by_underflow =
      Output("stats t.safetensors --format e4m3fn --scale none --sort underflow");
  EXPECT_THAT(by_underflow, HasSubstr("underflow %  tensor\n"));
  EXPECT_THAT(by_underflow, ::testing::ContainsRegex("e4m3fn +- +50  y\n"));
  EXPECT_THAT(Output("stats w.npy"), Not(HasSubstr("worst tensor")));
}

TEST_F(StatsCommand, NotesTheE4M3OfPapers) {
  const std::string note = "e4m3 ends at 240; OCP E4M3 of papers is e4m3fn\n";
  for (const char* const words : {"bf16,e4m3", "e4m3 --csv -"}) {
    const Outcome outcome = Numsim(std::string("stats w.npy --format ") + words);
    EXPECT_EQ(outcome.err, "numsim: note: " + note);
    EXPECT_THAT(outcome.out, Not(HasSubstr(note)));
  }
  Output("stats w.npy --format e4m3fn");  // says nothing on stderr
}

TEST_F(StatsCommand, PageDefinesTheColumnsInOrder) {
  const std::string page = TableOf(SourceText("docs/stats.md"), "stats");
  size_t at = 0;
  for (const std::string& column : Csv("w.npy").columns) {
    const size_t found = page.find(fmt::format("\n| `{}` |", column), at);
    ASSERT_NE(found, std::string::npos) << column;
    at = found + 1;
  }
  EXPECT_EQ(page.find("\n| `", at), std::string::npos);
  EXPECT_THAT(Output("stats --help"), HasSubstr("docs/stats.md"));
}

TEST_F(StatsCommand, BadListsAndOrdersAreErrors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--granularity tensor,rows", "granularity 'rows' is not one of tensor, row"},
      {"--granularity tensor,", "granularity '' is not one of"},
      {"--sort worst", "--sort 'worst' is not one of file, name, sqnr, error"}};
  for (const auto& [words, text] : cases) {
    const Outcome outcome = Numsim("stats w.npy " + words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(text));
  }
}

TEST_F(StatsCommand, StochasticRoundingIsReproducible) {
  const std::string sr = "stats w.npy --csv - --rounding sr --seed ";
  EXPECT_EQ(Output(sr + "3 --threads 1"), Output(sr + "3 --threads 2"));
  EXPECT_NE(Output(sr + "3"), Output(sr + "4"));
}

}  // namespace
}  // namespace numsim::apps
