// `numsim stats`: a row per tensor and format, equal to the library's measures.
#include <cmath>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/rounding/encode.h"
#include "tests/apps/program.h"

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

  Table Csv(const std::string& arguments) const {
    Put("table.csv", Output("stats " + arguments + " --csv -"));
    return ReadCsv(Path("table.csv"));
  }
};

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

TEST_F(StatsCommand, StochasticRoundingIsReproducible) {
  const std::string sr = "stats w.npy --csv - --rounding sr --seed ";
  EXPECT_EQ(Output(sr + "3 --threads 1"), Output(sr + "3 --threads 2"));
  EXPECT_NE(Output(sr + "3"), Output(sr + "4"));
}

}  // namespace
}  // namespace numsim::apps
