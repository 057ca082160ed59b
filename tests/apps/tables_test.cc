// Tables of values through the program: NF4 as in QLoRA, and a table of one's own.
#include <cmath>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Tables : public ProgramTest {};

TEST_F(Tables, CastAndBack) {
  PutNpy("x.npy", ElementType::kF32, std::vector<float>{-1, -0.6f, 0, 0.08f, 0.45f, 3, NAN});
  Output("cast x.npy codes.npy --format nf4");
  const Array codes = GetNpy("codes.npy");
  const std::vector<uint8_t> expected = {0, 2, 7, 8, 12, 15, 15};
  EXPECT_EQ(std::vector<uint8_t>(codes.Data<uint8_t>(), codes.Data<uint8_t>() + 7), expected);
  Output("cast codes.npy back.npy --format nf4 --decode");
  EXPECT_EQ(GetNpy("back.npy").Data<float>()[1], -0.5250730514526367f);
}

TEST_F(Tables, BlocksUnderAbsoluteMaximaAsInQlora) {
  std::vector<float> x(128);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 64;
  PutNpy("x.npy", ElementType::kF32, x, {2, 64});
  Output("cast x.npy codes.npy --format nf4 --granularity block:64 --scales-out scales.npy");
  const Array scales = GetNpy("scales.npy"), codes = GetNpy("codes.npy");
  EXPECT_EQ(scales.Data<float>()[0], 64);
  EXPECT_EQ(scales.Data<float>()[1], 63);
  EXPECT_EQ(codes.Data<uint8_t>()[0], 0);
  EXPECT_EQ(codes.Data<uint8_t>()[127], 15);
  Output("dequantize codes.npy back.npy --scales scales.npy --format nf4 --granularity block:64");
  EXPECT_EQ(GetNpy("back.npy").Data<float>()[0], -64);
  EXPECT_THAT(Output("stats x.npy --format nf4,int4 --granularity block:64"), HasSubstr("nf4"));
}

TEST_F(Tables, OneOfTheUsersOwn) {
  Put("mine.txt", "0 1 -1  # ternary\n");
  PutNpy("x.npy", ElementType::kF32, std::vector<float>{0.4f, 0.6f, -7});
  Output("cast x.npy codes.npy --format table:mine.txt");
  const Array codes = GetNpy("codes.npy");
  EXPECT_EQ(std::vector<uint8_t>(codes.Data<uint8_t>(), codes.Data<uint8_t>() + 3),
            (std::vector<uint8_t>{0, 1, 2}));
  EXPECT_THAT(Output("formats table:mine.txt"), AllOf(HasSubstr("3 values"), HasSubstr("unused")));
  EXPECT_THAT(Output("inspect table:mine.txt 0.5"), HasSubstr("midpoint 0.5"));
}

TEST_F(Tables, AreShownWithTheirValues) {
  EXPECT_THAT(Output("formats NF4"),
              AllOf(HasSubstr("a table of 16 values"), HasSubstr("-0.69619")));
  EXPECT_THAT(Output("formats nf4 --json"), HasSubstr("\"values\""));
  EXPECT_THAT(Output("inspect nf4 0.1"), HasSubstr("0.0795803"));
}

TEST_F(Tables, AreRefusedElsewhereByName) {
  const Outcome outcome =
      Numsim("train --preset tiny --set linear.kind=mx --set linear.format=nf4 --out a");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("a table of values"));
  PutNpy("x.npy", ElementType::kF32, std::vector<float>{1, 2});
  EXPECT_THAT(Numsim("cast x.npy y.npy --format table:none.txt").err, HasSubstr("none.txt"));
}

}  // namespace
}  // namespace numsim::apps
