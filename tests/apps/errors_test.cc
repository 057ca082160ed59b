// Bad invocations: exit code 2, nothing on stdout, one line on stderr that names what is at fault,
// and no file made or changed.
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

class BadInput : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    PutNpy("in.npy", ElementType::kF32, std::vector<float>{0.78f, 1, 2, 3});
    PutNpy("u8.npy", ElementType::kU8, std::vector<uint8_t>{1, 0xFF});
    PutNpy("u16.npy", ElementType::kU16, std::vector<uint16_t>{1, 2});
    PutNpy("out.npy", ElementType::kU8, std::vector<uint8_t>{42});
    const std::string whole = Bytes(Path("in.npy"));
    Put("truncated.npy", whole.substr(0, whole.size() - 3));
    Put("text.npy", "hello");
    std::string wrong_type = whole;
    wrong_type.replace(wrong_type.find("<f4"), 3, "<M8");
    Put("dates.npy", wrong_type);
    std::filesystem::create_directory(Path("directory"));
  }

  // `cast IN OUT --format F` and more.
  static std::vector<std::string> Cast(const std::string& words) { return Words("cast " + words); }
};

TEST_F(BadInput, UnknownCommands) {
  Expect(std::vector<BadCase>{{{"frobnicate"}, {"frobnicate"}},
                              {{"run", "nope"}, {"nope"}},
                              {{"describe", "nope"}, {"nope", "update-fidelity"}},
                              {{"merge", "nope", "a", "--out", "b"}, {"nope"}}});
}

TEST_F(BadInput, MistypedCommandsAndOptionsGetAHint) {
  Expect(std::vector<BadCase>{
      {{"tran", "--preset", "tiny"}, {"tran; did you mean train?"}},
      {{"run", "update-fidelty"}, {"did you mean update-fidelity?"}},
      {{"oracle", "chekc"}, {"did you mean check?"}},
      {{"stats", "in.npy", "--fromat", "bf16"}, {"did you mean --format?"}},
      {{"stats", "in.npy", "--granularty=row"}, {"did you mean --granularity?"}},
      {{"cast", "in.npy", "new.npy", "--fromat", "bf16"}, {"--format", "did you mean --format?"}},
      {{"stats", "in.npy", "--thread", "1"}, {"did you mean --threads?"}},
  });
  for (const char* const text : {"frobnicate", "--frobnicate", "x"}) {
    EXPECT_THAT(Numsim(text).err, Not(HasSubstr("did you mean"))) << text;
  }
}

TEST_F(BadInput, MissingArguments) {
  Expect(std::vector<BadCase>{{{}, {"COMMAND", "inspect"}},
                              {{"run"}, {"EXPERIMENT", "update-fidelity"}},
                              {{"describe"}, {"EXPERIMENT"}},
                              {{"inspect"}, {"FORMAT"}},
                              {{"inspect", "e4m3fn"}, {"VALUE"}},
                              {{"cast", "in.npy"}, {"OUT"}},
                              {{"cast", "in.npy", "new.npy"}, {"--format"}},
                              {{"stats"}, {"FILE"}},
                              {{"merge", "update-fidelity", "a"}, {"--out"}},
                              {{"plot"}, {"RESULT_DIR"}}});
}

TEST_F(BadInput, UnknownOptions) {
  Expect(std::vector<BadCase>{{{"--nope"}, {"--nope"}},
                              {{"formats", "--nope"}, {"--nope"}},
                              {{"list", "extra"}, {"extra"}},
                              {{"formats", "e4m3", "extra"}, {"extra"}},
                              {Cast("in.npy new.npy more --format e4m3fn"), {"more"}},
                              {{"run", "update-fidelity", "--nope", "1"}, {"--nope"}}});
}

TEST_F(BadInput, AnEmptyValueOfAnExperimentIsNotItsDefault) {
  Expect(std::vector<BadCase>{
      {{"run", "update-fidelity", "--formats", "", "--out", "new"}, {"format ''"}},
      {{"run", "update-fidelity", "--size", "", "--out", "new"}, {"--size"}}});
}

TEST_F(BadInput, Formats) {
  Expect(std::vector<BadCase>{
      {{"formats", "nope"}, {"'nope'"}},
      {{"formats", "e9m3"}, {"e9m3", "exponent bits"}},
      {{"formats", "e4m24"}, {"e4m24", "mantissa bits"}},
      {{"formats", "e4m3:bias=x"}, {"bias=x"}},
      {{"formats", "e4m3:colour=red"}, {"colour"}},
      {{"formats", "e4m3:inf=maybe"}, {"inf", "maybe"}},
      {{"formats", "e4m3:inf=none"}, {"inf=ieee", "nan=ieee"}},
      {{"formats", "int8:bias=3"}, {"int8"}},
      {{"inspect", "nope", "1"}, {"'nope'"}},
      {Cast("in.npy new.npy --format nope"), {"'nope'"}},
      {{"stats", "in.npy", "--format", "bf16,nope"}, {"'nope'"}},
      {{"stats", "in.npy", "--format", "bf16,"}, {"''"}},
  });
}

TEST_F(BadInput, Values) {
  Expect(std::vector<BadCase>{{{"inspect", "e4m3fn", "abc"}, {"'abc'"}},
                              {{"inspect", "e4m3fn", ""}, {"VALUE"}},
                              {{"inspect", "e4m3fn", "1+"}, {"'1+'"}},
                              {{"inspect", "e4m3fn", "1+2+3"}, {"'1+2+3'"}},
                              {{"inspect", "e4m3fn", "code:0x100"}, {"code:0x100", "8 bits"}},
                              {{"inspect", "e2m1fn", "code:16"}, {"code:16", "4 bits"}},
                              {{"inspect", "e4m3fn", "code:-1"}, {"code:-1"}},
                              {{"inspect", "e4m3fn", "code:"}, {"code:"}}});
}

TEST_F(BadInput, RoundingOptions) {
  const std::string cast = "in.npy out.npy --format e4m3fn ";
  Expect(std::vector<BadCase>{{Cast(cast + "--rounding up"), {"rounding", "'up'", "rne"}},
                              {Cast(cast + "--overflow wrap"), {"overflow", "'wrap'", "saturate"}},
                              {Cast(cast + "--sr-bits 0"), {"--sr-bits", "0"}},
                              {Cast(cast + "--sr-bits 33"), {"--sr-bits", "33"}},
                              {Cast(cast + "--sr-bits x"), {"--sr-bits", "x"}},
                              {Cast(cast + "--sr-variant d"), {"variant", "'d'"}},
                              {Cast(cast + "--seed x"), {"--seed", "x"}},
                              {{"inspect", "e4m3fn", "1", "--sr-bits", "0"}, {"--sr-bits"}},
                              {{"inspect", "e4m3fn", "1", "--sr-bits", "33"}, {"--sr-bits"}},
                              {{"stats", "in.npy", "--rounding", "up"}, {"'up'"}},
                              {{"stats", "in.npy", "--overflow", "wrap"}, {"'wrap'"}},
                              {{"stats", "in.npy", "--sr-bits", "0"}, {"--sr-bits"}}});
}

TEST_F(BadInput, SeedsBeyond64Bits) {
  const std::string cast = "in.npy out.npy --format e4m3fn --rounding sr --seed ";
  Expect(std::vector<BadCase>{
      {Cast(cast + "-1"), {"--seed", "-1"}},
      {Cast(cast + "18446744073709551616"), {"--seed", "18446744073709551616"}},
      {{"run", "update-fidelity", "--seed", "-1", "--shard", "x", "--out", "new"}, {"--seed"}},
  });
}

TEST_F(BadInput, InputFiles) {
  const std::string end = " out.npy --format e4m3fn";
  Expect(std::vector<BadCase>{
      {Cast("missing.npy" + end), {"missing.npy"}},
      {Cast("truncated.npy" + end), {"truncated.npy", "13 bytes", "16"}},
      {Cast("text.npy" + end), {"text.npy"}},
      {Cast("dates.npy" + end), {"dates.npy", "<M8"}},
      {Cast("directory" + end), {"directory"}},
      {Cast("u8.npy" + end), {"u8.npy", "uint8"}},
      {{"stats", "missing.npy"}, {"missing.npy"}},
      {{"stats", "truncated.npy"}, {"truncated.npy"}},
      {{"stats", "u8.npy"}, {"u8.npy"}},
      {{"stats", "directory"}, {"directory"}},
      {{"stats", "in.npy", "--tensor", "nope"}, {"in.npy", "'nope'"}},
      {{"plot", "missing"}, {"missing"}},
      {{"plot", "directory"}, {"directory"}},
      {{"merge", "update-fidelity", "missing", "--out", "new"}, {"missing"}},
  });
}

TEST_F(BadInput, CodesToDecode) {
  Expect(std::vector<BadCase>{
      {Cast("in.npy out.npy --format e4m3fn --decode"), {"in.npy", "float32", "uint8"}},
      {Cast("u16.npy out.npy --format e4m3fn --decode"), {"u16.npy", "uint16", "uint8"}},
      {Cast("u8.npy out.npy --format bf16 --decode"), {"u8.npy", "uint8", "uint16"}},
      {Cast("u8.npy out.npy --format e2m1fn --decode"), {"u8.npy", "element 1", "0xff"}},
      {Cast("truncated.npy out.npy --format e4m3fn --decode"), {"truncated.npy"}},
  });
}

TEST_F(BadInput, OutputFiles) {
  Expect(std::vector<BadCase>{
      {Cast("in.npy directory --format e4m3fn"), {"directory"}},
      {Cast("in.npy missing/out.npy --format e4m3fn"), {"missing/out.npy"}},
      {Cast("in.npy in.npy/out.npy --format e4m3fn"), {"in.npy/out.npy"}},
      {{"stats", "in.npy", "--csv", "directory"}, {"directory"}},
      {{"stats", "in.npy", "--csv", "missing/t.csv"}, {"missing/t.csv"}},
  });
}

// An output of another kind must not take the place of an input, also not through a link.
TEST_F(BadInput, OutputsOverInputs) {
  std::filesystem::create_symlink("in.npy", Path("link.npy"));
  std::filesystem::create_symlink("new.npy", Path("new-link.npy"));
  const std::string update = "update in.npy in.npy new.npy --format bf16 --rule kahan --lr 1e-3 ";
  Expect(std::vector<BadCase>{
      {{"stats", "in.npy", "--csv", "in.npy"}, {"--csv", "in.npy"}},
      {{"stats", "in.npy", "--csv", "link.npy"}, {"--csv", "link.npy"}},
      {Words(update + "--state-out in.npy"), {"--state-out", "in.npy"}},
      {Words(update + "--state-out new-link.npy"), {"--state-out", "OUT"}},
      {Words(update + "--state-out s.safetensors --groups link.npy"), {"--groups", "link.npy"}},
      {Cast("in.npy new.npy --format e4m3fn --scales-out ./in.npy"), {"--scales-out", "in.npy"}},
  });
}

TEST_F(BadInput, MistypedNamesGetAHint) {
  Expect(std::vector<BadCase>{
      {{"formats", "e4m3nf"}, {"did you mean e4m3fn?"}},
      {Cast("in.npy new.npy --format bfl16"), {"did you mean bf16?"}},
      {Cast("in.npy new.npy --format bf16 --rounding rnne"), {"did you mean rne?"}},
      {Cast("in.npy new.npy --format bf16 --overflow satuate"), {"did you mean saturate?"}},
      {Words("update in.npy in.npy new.npy --format bf16 --rule kahn --lr 1"),
       {"did you mean kahan?"}},
      {{"train", "--preset", "tinny"}, {"did you mean tiny?"}},
      {{"backends", "--backend", "scalr"}, {"did you mean scalar?"}},
  });
}

TEST_F(BadInput, EmptyFileNames) {
  Expect(std::vector<BadCase>{
      {{"run", "quantization-variance", "--out", ""}, {"--out"}},
      {{"merge", "quantization-variance", "a", "--out", ""}, {"--out"}},
      {{"demo", "--out", ""}, {"--out"}},
      {{"cast", "in.npy", "", "--format", "e4m3fn"}, {"OUT"}},
      {{"cast", "", "out.npy", "--format", "e4m3fn"}, {"IN"}},
  });
}

TEST_F(BadInput, ThreadsAndBackends) {
  const std::string cast = "in.npy out.npy --format e4m3fn ";
  Expect(std::vector<BadCase>{
      {Cast(cast + "--threads 0"), {"--threads", "0"}},
      {Cast(cast + "--threads 5000"), {"--threads", "5000"}},
      {Cast(cast + "--threads x"), {"--threads", "x"}},
      {Cast(cast + "--backend nope"), {"backend", "'nope'", "scalar"}},
      {Cast(cast), {"backend", "'nope'", "scalar"}, {{"NUMSIM_BACKEND", "nope"}}},
      {Cast(cast),
       {"OMP_NUM_THREADS: expected at most 4096 threads, found 99999"},
       {{"OMP_NUM_THREADS", "99999"}}},
      {{"train", "--preset", "tiny", "--out", "t"},
       {"OMP_NUM_THREADS: expected at most 4096 threads, found 4097"},
       {{"OMP_NUM_THREADS", "4097"}}},
      {{"backends", "--backend", "cuda"}, {"'cuda'"}, {{"CUDA_VISIBLE_DEVICES", "-1"}}},
      {{"backends"}, {"'AVX2'"}, {{"NUMSIM_BACKEND", "AVX2"}}},
  });
}

TEST_F(BadInput, Granularities) {
  for (const char* const text : {"cell", "block", "block:", "block:0", "block:-1", "block:2x"}) {
    Expect({{"stats", "in.npy", "--granularity", text}, {"granularity", text}});
  }
  Expect({{"stats", "in.npy", "--scale", "best"}, {"scale", "'best'", "absmax"}});
}

TEST_F(BadInput, RunsOfExperiments) {
  const auto run = [](const std::string& experiment, const std::string& options) {
    return Words("run " + experiment + " --out new " + options);
  };
  const std::string update = "update-fidelity", variance = "quantization-variance";
  Expect(std::vector<BadCase>{
      {run(update, "--preset foo"), {"--preset", "foo", "quick"}},
      {run(update, "--shard 3/2"), {"--shard", "3/2"}},
      {run(update, "--shard x"), {"--shard", "x"}},
      {run(update, "--shard 1/"), {"--shard", "1/"}},
      {run(update, "--shard 0/0"), {"--shard", "0/0"}},
      {run(update, "--seeds 0"), {"--seeds", "0"}},
      {run(update, "--seeds -1"), {"--seeds", "-1"}},
      {run(update, "--seed 18446744073709551615 --seeds 2"), {"--seed", "--seeds"}},
      {run(update, "--formats nope"), {"'nope'"}},
      {run(update, "--threads 0"), {"--threads"}},
      {run(update, "--backend nope"), {"'nope'"}},
      {run(variance, "--formats nope"), {"'nope'"}},
      {run(variance, "--k-low 3"), {"--k-low", "3"}},
      {run(variance, "--k-low 128 --k-high 64"), {"--k-low", "--k-high"}},
      {run(variance, "--pairs 3"), {"--pairs", "3"}},
      {run(variance, "--pairs x"), {"--pairs", "x"}},
      {run(variance, "--sr-bits 33"), {"--sr-bits", "33"}},
      {run(variance, "--distributions cauchy"), {"'cauchy'"}},
      {run(variance, "--roundings up"), {"'up'"}},
      {run(variance, "--granularities cell"), {"'cell'"}},
      {run(variance, "--tensor x"), {"--tensor"}},
      {run(variance, "--input missing.npy"), {"missing.npy"}},
      {run(variance, "--input truncated.npy"), {"truncated.npy"}},
      {run(variance, "--input in.npy"), {"in.npy", "dimensions"}},
      {Words("run update-fidelity --out in.npy"), {"in.npy"}},
  });
}

// Text that a user typed must not make a second line of the message.
TEST_F(BadInput, LineBreaksInArguments) {
  Expect(std::vector<BadCase>{{{"formats", "a\nb"}, {"format"}},
                              {{"inspect", "e4m3fn", "a\nb"}, {"VALUE"}},
                              {{"cast", "a\nb.npy", "out.npy", "--format", "e4m3fn"}, {"b.npy"}},
                              {{"stats", "in.npy", "--tensor", "a\nb"}, {"in.npy"}},
                              {{"backends", "--backend", "a\nb"}, {"backend"}},
                              {{"backends", "--threads", "1\n2"}, {"--threads"}},
                              {{"bad\ncommand"}, {"command"}},
                              {{"backends", "--bad\noption"}, {"option"}}});
}

// A result that cannot be printed is a failure, not a crash and not a success.
TEST_F(BadInput, FullOutputDevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  for (const char* const words : {"formats",
                                  "formats e4m3fn --json",
                                  "list",
                                  "stats in.npy --csv -",
                                  "--help",
                                  "--version",
                                  "train --help"}) {
    const Outcome outcome = RunProgram(Directory(), Words(words), {}, "/dev/full");
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_TRUE(outcome.err.starts_with("numsim: ")) << words << "\n" << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

// Without a place for the message, the exit code alone says that the input is bad.
TEST_F(BadInput, FullOrClosedErrorDevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const char* const program = std::getenv("NUMSIM_PROGRAM");
  ASSERT_NE(program, nullptr);
  for (const char* const redirection : {"2>/dev/full", "2>&-"}) {
    const std::string command = fmt::format("'{}' formats no-such-format {}", program, redirection);
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2) << redirection;
  }
}

// Thousands of parts took seconds to read, and more overflowed the stack.
TEST_F(BadInput, DeepKeys) {
  std::string dots = "a";
  for (int i = 0; i < 80000; ++i) dots += ".a";
  Put("key.toml", "\n" + dots + " = 1");
  Put("table.toml", "[" + dots + "]");
  Put("nine.toml", "a.b.c.d.e.f.g.h.i = 1");
  Put("quoted.toml", "\"a\"." + dots + " = 1");
  Put("value.toml", "x = { " + dots + " = 1 }");
  Expect(std::vector<BadCase>{
      {{"train", "key.toml", "--describe-config"}, {"key.toml:2", "more than 8 parts"}},
      {{"train", "table.toml", "--describe-config"}, {"table.toml:1", "more than 8 parts"}},
      {{"train", "nine.toml", "--describe-config"}, {"nine.toml:1", "more than 8 parts"}},
      {{"train", "quoted.toml", "--describe-config"}, {"quoted.toml:1", "more than 8 parts"}},
      {{"train", "value.toml", "--describe-config"}, {"value.toml:1", "more than 8 parts"}},
  });
}

TEST_F(BadInput, NumbersBeyondTheirLimits) {
  const auto train = [](const std::string& set) {
    return Words("train --preset tiny --set " + set);
  };
  Expect(std::vector<BadCase>{
      {train("model.layers=1024"), {"model.layers", "1024", "1000"}},
      {train("model.norm_epsilon=1e308"), {"model.norm_epsilon", "float32"}},
      {train("model.rope_base=1e308"), {"model.rope_base", "float32"}},
      {Words("oracle gen --op cast --format bf16 --length x"), {"--length"}},
      {Words("oracle gen --op add --format e4m3fn --level random:18446744073709551615"),
       {"--level", "2^40"}},
  });
}

// libgomp ends the process by itself, with the code of checks that failed. A sanitizer needs more
// addresses than the limit leaves.
TEST_F(BadInput, ThreadsThatTheSystemDoesNotGive) {
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "another OpenMP runtime, or a sanitizer";
#endif
  const std::string command = fmt::format(
      "cd '{}'; ulimit -v 6000000; '{}' train --preset tiny --threads 4096 --out t 2>/dev/null",
      Directory().string(),
      std::getenv("NUMSIM_PROGRAM"));
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
}

}  // namespace
}  // namespace numsim::apps
