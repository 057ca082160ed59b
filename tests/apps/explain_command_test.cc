// `numsim explain gemm`: its lines for recorded shapes and others, and the command that it prints.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ExplainCommand : public ProgramTest {};

TEST_F(ExplainCommand, SaysWhichProductsARecordedPlanLoses) {
  EXPECT_EQ(
      Output("explain gemm --shape 1x16x11528 --format bf16"),
      "product           1 x 16 results of 11528 products, bf16 by bf16 to bf16; A and B row-major\n"
      "library           cuBLASLt 13.1.0 on an NVIDIA H200, workspace 32MiB\n"
      "plan              measured: algorithm 66, k-tiles of 64, 9 parts\n"
      "sum               parts of 1280 products, each under hopper-bf16 from zero; added in float32, "
      "in order\n"
      "lost              the last 8 of 11528 products: they are in no part. Zeros at the end of K, up "
      "to 11584, keep them\n"
      "result            epilogue cublaslt, then rounded once to bf16\n"
      "command           numsim gemm A.npy B.npy OUT.npy --format bf16 --accumulation-mode hopper-bf16 "
      "--epilogue cublaslt --out-format bf16 --split-k 9 --split-partition cublaslt\n");
}

TEST_F(ExplainCommand, HasPlansWithoutASplitAndWithOneThatLosesNothing) {
  const std::string one = Output("explain gemm --shape 8192x8192x4096 --format fp16 --out fp32");
  EXPECT_THAT(one,
              HasSubstr("k-tiles of 64, one sum\nsum               one sum under hopper-fp16\n"
                        "lost              no product\nresult            epilogue cublaslt\n"));
  EXPECT_THAT(one, Not(HasSubstr("--split-k")));
  const std::string fast =
      Output("explain gemm --shape 64x64x65536 --format e4m3fn --fast --workspace 1MiB");
  EXPECT_THAT(fast, HasSubstr("k-tiles of 128, 25 parts\n"));
  EXPECT_THAT(fast, HasSubstr("under hopper-fp8-fast from zero"));
  EXPECT_THAT(fast, HasSubstr("lost              no product\n"));
}

TEST_F(ExplainCommand, SaysThatAShapeIsNotRecorded) {
  const std::string shape = "explain gemm --shape 1x16x11528 --format bf16 --workspace 1MiB";
  const std::string text = Output(shape);
  EXPECT_THAT(text, HasSubstr("plan              not recorded for this shape"));
  EXPECT_THAT(text, HasSubstr("                  1 x 16 x 11008: 8 parts\n"));
  EXPECT_THAT(text, Not(HasSubstr("measured")));
  EXPECT_THAT(text, Not(HasSubstr("command")));
  const std::string given = Output(shape + " --splits 12");
  EXPECT_THAT(given, HasSubstr("plan              given: 12 parts\n"));
  EXPECT_THAT(given, HasSubstr("--split-k 12 --split-partition cublaslt\n"));
}

TEST_F(ExplainCommand, ItsCommandLosesTheProductsThatItNames) {
  const std::string text = Output("explain gemm --shape 1x16x11528 --format bf16");
  std::string command = text.substr(text.find("numsim gemm") + 7);
  command.erase(command.find('\n'));
  std::vector<uint16_t> a(11528), b(16 * 11528, 0x3F80);
  std::fill(a.end() - 9, a.end(), uint16_t{0x3F80});
  PutNpy("A.npy", ElementType::kU16, a, {1, 11528});
  PutNpy("B.npy", ElementType::kU16, b, {16, 11528});
  EXPECT_THAT(Output(command), HasSubstr("the last 8 of 11528 products are not summed"));
  EXPECT_EQ(GetNpy("OUT.npy").Data<float>()[0], 1);
}

TEST_F(ExplainCommand, BadOptionsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"--shape 1x16 --format bf16", "--shape: expected MxNxK"},
      {"--shape 1x16x0 --format bf16", "--shape: expected MxNxK"},
      {"--shape 1x16x12x4 --format bf16", "--shape: expected MxNxK"},
      {"--shape 1x16x12", "--format is required"},
      {"--shape 1x16x12 --format int8", "operands of int8, expected e4m3fn, bf16 or fp16"},
      {"--shape 1x16x12 --format e4m3fn --out fp16", "results of fp16, expected bf16 or fp32"},
      {"--shape 1x16x12 --format bf16 --fast", "fast accumulation is for operands of e4m3fn"},
      {"--shape 1x16x12 --format bf16 --workspace 4MiB", "--workspace"},
      {"--shape 1x16x12 --format bf16 --card b200", "--card"},
      {"--shape 4x16x40 --format bf16 --splits 41", "41 parts of 40 products"}};
  for (const auto& [options, text] : cases) {
    const Outcome outcome = Numsim("explain gemm " + std::string(options));
    EXPECT_EQ(outcome.exit_code, 2) << options;
    EXPECT_EQ(outcome.out, "") << options;
    EXPECT_THAT(outcome.err, HasSubstr(text));
  }
}

}  // namespace
}  // namespace numsim::apps
