// numsim oracle gen, check, kappa and pack as a user runs them: in pipes, with a program that
// numsim knows nothing of (tests/apps/programs/naive_e4m3fn.cc) between them.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/io/shared/sha256.h"
#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Oracle : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    for (const char* const name : {"NUMSIM_PROGRAM", "NUMSIM_NAIVE_E4M3FN"}) {
      ASSERT_NE(std::getenv(name), nullptr) << name << " is not set";
    }
  }

  // Runs a line of the shell in the test's directory, in which $numsim and $naive are programs. The
  // exit code is that of the last program of a pipe.
  Outcome Shell(const std::string& line) const {
    const std::string base = Directory().string();
    const std::string whole = "cd '" + base + "' && numsim='" + std::getenv("NUMSIM_PROGRAM") +
                              "' naive='" + std::getenv("NUMSIM_NAIVE_E4M3FN") + "' && " + line;
    Put("line.sh", whole + "\n");
    const std::string command =
        fmt::format("/bin/sh '{0}/line.sh' >'{0}.out' 2>'{0}.err' </dev/null", base);
    const int status = std::system(command.c_str());
    Outcome outcome;
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.out = Bytes(base + ".out");
    outcome.err = Bytes(base + ".err");
    for (const char* const ending : {".out", ".err"}) std::filesystem::remove(base + ending);
    return outcome;
  }

  // Writes `text` to a file and lets `check` (or another command) read it.
  Outcome Check(const std::string& text, const std::string& options) const {
    Put("lines.txt", text);
    return Shell("$numsim oracle check " + options + " <lines.txt");
  }

  static void ExpectContains(const std::string& text, const std::string& part) {
    EXPECT_THAT(text, HasSubstr(part));
  }
};

const std::string kAdd = "--op add --format e4m3fn";
const std::string kConvert = "--op convert --format fp32 --to e4m3fn";
const std::string kNotChecked = "completeness not checked: give --level and --seed of gen\n";

TEST_F(Oracle, EveryCommandHasHelpWithAnExample) {
  for (const char* const command : {"",
                                    " gen",
                                    " check",
                                    " answer",
                                    " kappa",
                                    " pack",
                                    " accumulation-modes",
                                    " accumulators"}) {
    ExpectContains(Output(std::string("oracle") + command + " --help"),
                   "Example:\n  numsim oracle ");
  }
  ExpectContains(Numsim("oracle").err, "gen, check");
}

TEST_F(Oracle, GenWritesCodesInFixedWidth) {
  const Outcome full = Numsim("oracle gen " + kAdd + " --level full");
  ASSERT_EQ(full.exit_code, 0) << full.err;
  const std::vector<std::string> lines = full.Lines();
  ASSERT_EQ(lines.size(), 65536u);
  for (unsigned i = 0; i < 65536; ++i) {
    ASSERT_EQ(lines[i], fmt::format("{:02X} {:02X}", i / 256, i % 256));
  }
}

TEST_F(Oracle, GenAddsResultsAndFlags) {
  const Outcome outcome = Numsim("oracle gen " + kAdd + " --level full --results");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = outcome.Lines();
  ASSERT_EQ(lines.size(), 65536u);
  EXPECT_EQ(lines[0x3838], "38 38 40 00");  // 1 + 1 = 2
  EXPECT_EQ(lines[0x7E38], "7E 38 7E 01");  // 448 + 1 = 448, inexact
  EXPECT_EQ(lines[0x7E7E], "7E 7E 7F 05");  // 448 + 448: overflow
  EXPECT_EQ(lines[0x387F], "38 7F 7F 00");  // NaN
}

TEST_F(Oracle, GenIsTheSameEveryTimeAndOnAnyNumberOfThreads) {
  const std::string words =
      "oracle gen --op fma --format e5m2 --results --level random:50000 --seed 3";
  const std::string once = Output(words + " --threads 1");
  EXPECT_TRUE(once == Output(words + " --threads 3"));
  EXPECT_FALSE(once == Output(words + "1"));
}

TEST_F(Oracle, RightProgramPasses) {
  const Outcome add = Shell("$numsim oracle gen " + kAdd +
                            " --level full | $naive add | $numsim oracle check " + kAdd);
  EXPECT_EQ(add.exit_code, 0) << add.out << add.err;
  EXPECT_EQ(add.out, "65536 cases, all results right\n" + kNotChecked);
  const Outcome convert = Shell("$numsim oracle gen " + kConvert +
                                " | $naive convert | $numsim oracle check " + kConvert);
  EXPECT_EQ(convert.exit_code, 0) << convert.out << convert.err;
  const Outcome saturating = Shell("$numsim oracle gen " + kConvert +
                                   " | $naive convert --saturate | $numsim oracle check " +
                                   kConvert + " --overflow saturate");
  EXPECT_EQ(saturating.exit_code, 0) << saturating.out << saturating.err;
}

// Each of the mistakes that real implementations make is caught.
TEST_F(Oracle, WrongProgramsAreCaught) {
  struct Wrong {
    std::string fault, mode, gen, check;
    int exit_code = 1;
  };
  const std::string saturate = kConvert + " --overflow saturate";
  for (const Wrong& wrong : std::vector<Wrong>{
           {"ties-away", "add", kAdd + " --level full", kAdd},
           {"ties-away", "convert", kConvert, kConvert},
           {"saturate-480", "add", kAdd + " --level full", kAdd},
           {"saturate-480", "convert --saturate", kConvert, saturate},
           {"no-sticky", "convert", kConvert, kConvert},
           {"nan-sign", "add", kAdd + " --level full", kAdd},
           {"nan-sign", "convert", kConvert, kConvert},
           // Differences that a sum cannot show, and those that the user has allowed.
           {"no-sticky", "add", kAdd + " --level full", kAdd, 0},
           {"nan-sign", "add", kAdd + " --level full", kAdd + " --nan any", 0}}) {
    const Outcome outcome =
        Shell("$numsim oracle gen " + wrong.gen + " | $naive " + wrong.mode + " --fault " +
              wrong.fault + " | $numsim oracle check " + wrong.check);
    EXPECT_EQ(outcome.exit_code, wrong.exit_code)
        << wrong.fault << " " << wrong.mode << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Oracle, MismatchesAreShownWithBitsAndValues) {
  const Outcome outcome = Check("38 38 40\n38 A8 35\n7F 38 FF\n7E 7E 7E\n", kAdd + " --limit 2");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out,
            "line 2: 38 A8 35\n"
            "  a                   0x38  0 0111 000  1\n"
            "  b                   0xA8  1 0101 000  -0.25\n"
            "  result    got       0x35  0 0110 101  0.8125\n"
            "            expected  0x34  0 0110 100  0.75\n"
            "line 4: 7E 7E 7E\n"
            "  a                   0x7E  0 1111 110  448\n"
            "  b                   0x7E  0 1111 110  448\n"
            "  result    got       0x7E  0 1111 110  448\n"
            "            expected  0x7F  0 1111 111  nan\n"
            "... and 1 more\n"
            "4 cases, 3 wrong: 2 wrong values, 1 NaN of another code (--nan any accepts them)\n" +
                kNotChecked);
  const Outcome any = Check("38 38 40\n38 A8 35\n7F 38 FF\n", kAdd + " --nan any");
  ExpectContains(any.out, "3 cases, 1 wrong\n");
}

// A multiplier that answers NaN with 0x7F, as CUDA and PyTorch do, and rounds 256 results wrongly:
// what is wrong is seen at once, before what is a convention.
TEST_F(Oracle, WrongValuesAreSaidBeforeNansOfAnotherCode) {
  const std::string mul = "--op mul --format e5m2";
  std::string text;
  for (const std::string& line : Numsim("oracle gen " + mul + " --level full --results").Lines()) {
    const std::vector<std::string> words = Words(line);
    const std::string result = words[2] == "7E" ? "7F" : words[2] == "01" ? "02" : words[2];
    text += words[0] + " " + words[1] + " " + result + "\n";
  }
  const Outcome outcome = Check(text, mul + " --limit 1");
  EXPECT_EQ(outcome.exit_code, 1);
  // 6 NaN codes of 256 on either side, and 0 times infinity: 2 * 6 * 256 - 36 + 2 * 2 * 2.
  ExpectContains(outcome.out, " wrong values, 3044 NaN of another code (--nan any accepts them)\n");
  ExpectContains(outcome.out, "  result    got       0x02");
}

TEST_F(Oracle, FlagsAreJudgedWhereTheyAreGiven) {
  EXPECT_EQ(Check("7E 38 7E 01\n", kAdd).out,
            "1 cases, all results and flags right\n" + kNotChecked);
  const Outcome wrong = Check("7E 38 7E 01\n7E 38 7E 03\n38 38 41 00\n", kAdd);
  EXPECT_EQ(wrong.exit_code, 1);
  ExpectContains(wrong.out,
                 "  flags     got       0x03 underflow inexact\n"
                 "            expected  0x01 inexact\n");
  ExpectContains(wrong.out, "3 cases, 2 wrong: 1 wrong value, 1 wrong in the flags alone\n");
  const Outcome missing = Check("7E 38 7E\n", kAdd + " --flags");
  EXPECT_EQ(missing.exit_code, 2);
  ExpectContains(missing.err, "column 4 (flags) is missing");
}

TEST_F(Oracle, EveryLineIsReadAsPeopleWriteIt) {
  const Outcome outcome = Check("\n  38\t38   40 \r\n\r\n7e 38 7E\r\n 0038 0x38 0X40", kAdd);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "3 cases, all results right\n" + kNotChecked);
}

TEST_F(Oracle, MalformedInputNamesLineAndColumn) {
  struct Bad {
    std::string text, named;
  };
  for (const Bad& bad : std::vector<Bad>{
           {"", "standard input: no cases"},
           {"\n\n", "standard input: no cases"},
           {"38 38\n", "standard input: line 1, column 3 (result) is missing"},
           {"38 38 40\n38 38\n", "line 2, column 3 (result) is missing"},
           {"38 38 40\n38 38 40 00\n", "line 2, column 4 is unexpected"},
           {"38 38 40 00 00\n", "line 1, column 5 is unexpected"},
           {"38 38 40\n\n38 0y38 40\n", "line 3, column 2 (b): '0y38'"},
           {"38 38 140\n", "line 1, column 3 (result): '140' does not fit into 8 bits"},
           {"38,38,40\n", "line 1, column 1 (a): '38,38,40'"}}) {
    for (const char* const command : {"check ", "kappa "}) {
      Put("lines.txt", bad.text);
      const Outcome outcome =
          Shell(std::string("$numsim oracle ") + command + kAdd + " <lines.txt");
      EXPECT_EQ(outcome.exit_code, 2) << bad.text;
      EXPECT_EQ(outcome.out, "") << bad.text;
      ExpectMessage(outcome.err.substr(0, outcome.err.size() - 1), {"numsim: ", bad.named});
    }
  }
}

TEST_F(Oracle, BadOptionsAreNamed) {
  struct Bad {
    std::string words, named;
  };
  for (const Bad& bad :
       std::vector<Bad>{{"gen --op nope --format e4m3fn", "nope"},
                        {"gen --format e4m3fn", "--op"},
                        {"gen --op add", "--format"},
                        {"gen --op add --format nope", "nope"},
                        {"gen " + kAdd + " --level half", "half"},
                        {"gen --op fma --format fp16 --level full", "full"},
                        {"gen " + kAdd + " --rounding up", "'up'"},
                        {"gen " + kAdd + " --tininess never", "'never'"},
                        {"gen --op to-i8 --format fp16 --invalid-integer amd",
                         "'amd' is not one of riscv, arm, x86"},
                        {"gen " + kAdd + " --npy missing/a.npy", "missing/a.npy"},
                        {"check --format e4m3fn", "--op"},
                        {"check " + kAdd + " --nan some", "'some'"},
                        {"check " + kAdd + " --level half", "half"},
                        {"check " + kAdd + " --seed 3", "--level"},
                        {"check --pack p --level full", "--pack"},
                        {"kappa " + kAdd + " --nan some", "'some'"},
                        {"answer --op nope --format e4m3fn", "nope"},
                        {"answer " + kAdd + " --npy missing.npy", "--out"},
                        {"answer " + kAdd + " --out a.npy", "--npy"},
                        {"answer " + kAdd + " --npy missing.npy --out a.npy", "missing.npy"},
                        {"gen " + kAdd + " --profile cuda-13", "--profile"},
                        {"gen " + kConvert + " --profile torch", "torch-2.11"},
                        {"gen " + kConvert + " --profile nope", "'nope'"},
                        {"check " + kAdd + " --npy missing.npy", "missing.npy"},
                        {"check " + kAdd + " --pack missing", "--pack"},
                        {"check --pack missing", "missing"},
                        {"pack", "DIR"},
                        {"pack new --set nope", "'nope'"},
                        {"kappa --op eq --format e4m3fn", "eq"}}) {
    const Outcome outcome = Numsim("oracle " + bad.words);
    EXPECT_EQ(outcome.exit_code, 2) << bad.words;
    EXPECT_EQ(outcome.out, "") << bad.words;
    ExpectMessage(outcome.err.substr(0, outcome.err.size() - 1), {"numsim: ", bad.named});
  }
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
}

TEST_F(Oracle, ArraysHoldTheSameCasesAsText) {
  Output("oracle gen " + kAdd + " --level full --results --npy cases.npy");
  const Array array = GetNpy("cases.npy");
  ASSERT_EQ(array.type, ElementType::kU8);
  ASSERT_EQ(array.shape, (std::vector<size_t>{65536, 4}));
  const std::string text = Output("oracle gen " + kAdd + " --level full --results");
  std::string expected;
  for (size_t i = 0; i < array.Elements(); ++i) {
    expected += fmt::format("{:02X}{}", array.Data<uint8_t>()[i], i % 4 == 3 ? '\n' : ' ');
  }
  EXPECT_TRUE(text == expected);
  EXPECT_EQ(Output("oracle check " + kAdd + " --npy cases.npy"),
            "65536 cases, all results and flags right\n" + kNotChecked);
  EXPECT_EQ(Output("oracle check " + kAdd + " --npy cases.npy --level full"),
            "65536 cases, all results and flags right\n"
            "complete: all 65536 cases of --level full\n");
  Array wrong = array;
  wrong.Data<uint8_t>()[4 * 100 + 2] ^= 1;
  PutNpy("wrong.npy",
         ElementType::kU8,
         std::vector<uint8_t>(wrong.Data<uint8_t>(), wrong.Data<uint8_t>() + wrong.Elements()),
         wrong.shape);
  const Outcome outcome = Numsim("oracle check " + kAdd + " --npy wrong.npy");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.out.starts_with("row 100: ")) << outcome.out;
}

TEST_F(Oracle, WiderColumnsTakeWiderElements) {
  Output("oracle gen --op add --format bf16 --level random:10 --npy a.npy");
  EXPECT_EQ(GetNpy("a.npy").type, ElementType::kU16);
  Output("oracle gen " + kConvert + " --level random:10 --npy b.npy");
  EXPECT_EQ(GetNpy("b.npy").type, ElementType::kU32);
}

TEST_F(Oracle, RandomBitsAreAColumn) {
  const std::string sr = kConvert + " --rounding sr --sr-bits 8 --sr-variant a";
  const Outcome outcome = Numsim("oracle gen " + sr + " --level random:5 --results");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const std::string& line : outcome.Lines()) {
    const std::vector<std::string> words = Words(line);
    ASSERT_EQ(words.size(), 4u) << line;  // a, random, result, flags
    EXPECT_EQ(words[0].size(), 8u);
    EXPECT_EQ(words[1].size(), 2u);
  }
  // 0.78 lies 0.48 of the way from 0.75 (0x34) to 0.8125: floor(0.48 * 2^8) = 122.
  EXPECT_EQ(Check("3F47AE14 85 34\n3F47AE14 86 35\n", sr).exit_code, 0);
  EXPECT_EQ(Check("3F47AE14 85 35\n", sr).exit_code, 1);
  EXPECT_EQ(Check("3F47AE14 86 34\n", sr).exit_code, 1);
}

// A program that stops half-way, or always answers the same, is right and does not pass.
TEST_F(Oracle, IncompleteAnswersDoNotPass) {
  const std::string answers = "$numsim oracle gen " + kAdd + " --level full | $naive add >a.txt; ";
  const std::string check = "$numsim oracle check " + kAdd;
  EXPECT_EQ(Shell(answers + "head -100 a.txt | " + check).out,
            "100 cases, all results right\n" + kNotChecked);
  const Outcome head = Shell("head -100 a.txt | " + check + " --level full");
  EXPECT_EQ(head.exit_code, 1);
  EXPECT_EQ(head.out,
            "100 cases, all results right\n"
            "missing   00 64\n"
            "missing   00 65\n"
            "missing   00 66\n"
            "missing   00 67\n"
            "missing   00 68\n"
            "missing   ... and 65431 more\n"
            "incomplete: of the 65536 cases of --level full, 65436 missing; 0 repeated; "
            "0 foreign\n");
  const Outcome same = Shell("head -1 a.txt >b.txt; cat b.txt b.txt b.txt | " + check +
                             " --level random:3 --seed 5");
  EXPECT_EQ(same.exit_code, 1);
  ExpectContains(same.out, "foreign   line 1\n");
  ExpectContains(same.out, "of --level random:3, 3 missing; 0 repeated; 3 foreign\n");
  const Outcome twice = Shell("cat b.txt a.txt | " + check + " --level full");
  EXPECT_EQ(twice.exit_code, 1);
  ExpectContains(twice.out,
                 "repeated  line 2: 00 00\n"
                 "incomplete: of the 65536 cases of --level full, 0 missing; 1 repeated; "
                 "0 foreign\n");
  const Outcome sorted = Shell("sort -r a.txt | " + check + " --level full");
  EXPECT_EQ(sorted.exit_code, 0);
  EXPECT_EQ(sorted.out,
            "65536 cases, all results right\n"
            "complete: all 65536 cases of --level full\n");
  const Outcome none = Shell(check + " --level full </dev/null");
  EXPECT_EQ(none.exit_code, 2);
  ExpectContains(none.err, "no cases");
}

TEST_F(Oracle, CompletenessOfRandomCasesDependsOnTheSeed) {
  const std::string gen = "$numsim oracle gen " + kConvert + " --level random:500 --seed 9 | ";
  const std::string check = "$naive convert | $numsim oracle check " + kConvert;
  EXPECT_EQ(Shell(gen + check + " --level random:500 --seed 9").exit_code, 0);
  EXPECT_EQ(Shell(gen + check + " --level random:500 --seed 8").exit_code, 1);
  EXPECT_EQ(Shell(gen + check + " --level random:499 --seed 9").exit_code, 1);
}

TEST_F(Oracle, AnswerCompletesGivenCases) {
  Put("cases.txt", "0x38 A8\n\n7E 7E\n7f 38\n");
  EXPECT_EQ(Shell("$numsim oracle answer " + kAdd + " <cases.txt").out,
            "38 A8 34 00\n7E 7E 7F 05\n7F 38 7F 00\n");
  // Random bits are given: 0.78 goes up from R = 134 of 256 on.
  Put("random.txt", "3F47AE14 85\n3F47AE14 86\n");
  EXPECT_EQ(
      Shell("$numsim oracle answer " + kConvert + " --rounding sr --sr-bits 8 <random.txt").out,
      "3F47AE14 85 34 01\n3F47AE14 86 35 01\n");
  for (const std::string& words :
       {kAdd + " --level random:2000",
        kConvert + " --rounding sr --sr-bits 8 --level random:2000",
        std::string("--op dot --format bf16 --to fp32 --length 9 --level random:200"),
        std::string("--op quantize-mx --to e4m3fn --level random:200"),
        std::string("--op quantize-mx --to e2m1fn --scale-rule e8m0-even --level random:200"),
        std::string("--op eq --format e2m1fn --level full")}) {
    const std::string operation = words.substr(0, words.find(" --level"));
    const Outcome answers =
        Shell("$numsim oracle gen " + words + " | $numsim oracle answer " + operation);
    EXPECT_EQ(answers.exit_code, 0) << answers.err;
    EXPECT_TRUE(answers.out == Output("oracle gen " + words + " --results")) << words;
  }
  const Outcome wide = Shell("echo 38 38 40 | $numsim oracle answer " + kAdd);
  EXPECT_EQ(wide.exit_code, 2);
  ExpectContains(wide.err, "standard input: line 1, column 3 is unexpected after a b");
}

TEST_F(Oracle, AnswerCompletesArrays) {
  const std::string dot = "--op dot --format e4m3fn --to fp32 --length 4";
  Output("oracle gen " + dot + " --level random:100 --npy cases.npy");
  Output("oracle gen " + dot + " --level random:100 --results --npy expected.npy");
  EXPECT_EQ(Output("oracle answer " + dot + " --npy cases.npy --out answers.npy"), "");
  EXPECT_EQ(GetNpy("answers.npy").type, ElementType::kU32);
  EXPECT_TRUE(Bytes(Path("answers.npy")) == Bytes(Path("expected.npy")));
  EXPECT_EQ(Output("oracle check " + dot + " --npy answers.npy --level random:100"),
            "100 cases, all results and flags right\n"
            "complete: all 100 cases of --level random:100\n");
  // The answers of 32 bits do not fit into the elements of the cases.
  PutNpy("narrow.npy", ElementType::kU16, std::vector<uint16_t>(18), {2, 9});
  const Outcome narrow = Numsim("oracle check " + dot + " --npy narrow.npy");
  EXPECT_EQ(narrow.exit_code, 2);
  ExpectContains(narrow.err,
                 "narrow.npy: element type uint16 is too narrow for column result of 32 bits, "
                 "expected uint32");
}

TEST_F(Oracle, LongLinesAreCut) {
  const std::string dot = "--op dot --format e4m3fn --to fp32 --length 1024";
  std::string zeros;
  for (int i = 0; i < 2048; ++i) zeros += "00 ";
  for (const char* const command : {"check ", "kappa "}) {
    Put("lines.txt", zeros + "3F800000\n");
    const Outcome outcome = Shell(std::string("$numsim oracle ") + command + dot + " <lines.txt");
    ExpectContains(outcome.out,
                   "line 1: 00 00 00 00 00 00 00 00 ... (2037 columns) ... 00 00 00 3F800000\n");
    for (const std::string& line : outcome.Lines()) EXPECT_LE(line.size(), 100u);
  }
}

TEST_F(Oracle, AllFailuresGoToAFile) {
  const std::string text = "38 38 40\n7F 38 FF\n38 A8 35\n7E 7E 7E\n";
  const Outcome outcome = Check(text, kAdd + " --limit 1 --failures f.csv");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(Bytes(Path("f.csv")),
            "line,kind,a,b,result,result_expected,flags,flags_expected\n"
            "2,nan,0x7F,0x38,0xFF,0x7F,,0x00\n"
            "3,value,0x38,0xA8,0x35,0x34,,0x00\n"
            "4,value,0x7E,0x7E,0x7E,0x7F,,0x05\n");
  Check("7E 38 7E 03\n38 38 40 00\n", kAdd + " --failures f.csv");
  EXPECT_EQ(Bytes(Path("f.csv")),
            "line,kind,a,b,result,result_expected,flags,flags_expected\n"
            "1,flags,0x7E,0x38,0x7E,0x7E,0x03,0x01\n");
  // All 65,536, on any number of threads, in order.
  const std::string all = "$numsim oracle gen " + kAdd +
                          " --level full | sed 's/$/ 11 00/' | $numsim oracle check " + kAdd;
  EXPECT_EQ(Shell(all + " --failures one.csv --threads 1 --limit 0").exit_code, 1);
  EXPECT_EQ(Shell(all + " --failures three.csv --threads 3").exit_code, 1);
  EXPECT_TRUE(Bytes(Path("one.csv")) == Bytes(Path("three.csv")));
  const std::string rows = Bytes(Path("one.csv"));
  EXPECT_GT(std::count(rows.begin(), rows.end(), '\n'), 60'000);
  // Bad input leaves no file behind.
  EXPECT_EQ(Check("38 38\n", kAdd + " --failures bad.csv").exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(Path("bad.csv")));
}

TEST_F(Oracle, KappaAndCheckAcceptTheSameNans) {
  for (const bool any : {false, true}) {
    const std::string options = kAdd + (any ? " --nan any" : "");
    Put("lines.txt", "7F 38 FF\n");
    EXPECT_EQ(Shell("$numsim oracle check " + options + " <lines.txt").exit_code, any ? 0 : 1);
    const Outcome kappa = Shell("$numsim oracle kappa " + options + " <lines.txt");
    EXPECT_EQ(kappa.exit_code, 0);
    ExpectContains(kappa.out, fmt::format("not comparable      {}\n", any ? 0 : 1));
    EXPECT_EQ(kappa.out.find("another NaN code  1 (--nan any accepts them)") == std::string::npos,
              any);
  }
}

// A converter is judged against another implementation, also by an abbreviated name.
TEST_F(Oracle, ProfilesJudgeConversions) {
  const std::string hip = kConvert + " --profile hip";
  EXPECT_EQ(Output("oracle gen " + hip + " --level random:20 --results"),
            Output("oracle gen " + kConvert + " --profile hip-host --level random:20 --results"));
  const std::string lines = "43E40000 7F\n1C880000 08\n";  // 456, and 9e-22, which comes back
  EXPECT_EQ(Check(lines, hip).exit_code, 0);
  const Outcome cuda = Check(lines, kConvert + " --profile cuda");
  EXPECT_EQ(cuda.exit_code, 1);
  ExpectContains(cuda.out, "2 cases, 2 wrong\n");
  Put("cases.txt", "43E40000\n");
  EXPECT_EQ(Shell("$numsim oracle answer " + hip + " <cases.txt").out, "43E40000 7F\n");
  EXPECT_EQ(Shell("$numsim oracle answer " + kConvert + " --profile cuda <cases.txt").out,
            "43E40000 7E\n");
  const Outcome flags = Check(lines, hip + " --flags");
  EXPECT_EQ(flags.exit_code, 2);
  ExpectContains(flags.err, "--flags: convert has no flags");
  const Outcome both = Numsim("oracle gen " + hip + " --rounding rtz");
  EXPECT_EQ(both.exit_code, 2);
  ExpectContains(both.err, "--profile excludes --rounding");
}

TEST_F(Oracle, KappaOfTheRightProgramIsZeroAndOfTiesAwayOne) {
  const std::string gen = "$numsim oracle gen " + kAdd + " --level full | $naive add --saturate ";
  const std::string kappa = " | $numsim oracle kappa " + kAdd + " --overflow saturate";
  const Outcome right = Shell(gen + kappa);
  EXPECT_EQ(right.exit_code, 0) << right.err;
  ExpectContains(right.out, "largest error       0 value steps\n");
  ExpectContains(right.out, "\nkappa 0 covers these cases\n");
  const Outcome away = Shell(gen + "--fault ties-away" + kappa);
  EXPECT_EQ(away.exit_code, 0) << away.err;
  ExpectContains(away.out, "largest error       1 value step\n");
  ExpectContains(away.out, "  first at          line 273: 01 10 11\n");
  ExpectContains(away.out, "not comparable      0\n");
  ExpectContains(away.out, "\nkappa 1 covers these cases\n");
  for (const Outcome* outcome : {&right, &away}) {
    EXPECT_THAT(outcome->out, Not(HasSubstr("conform")));
    ExpectContains(outcome->out, "checked against");
  }
  const Outcome numbers = Shell(gen + "--fault saturate-480" + kappa);
  EXPECT_EQ(numbers.exit_code, 0) << numbers.err;
  ExpectContains(numbers.out, "no kappa covers these cases");
  const Outcome held = Shell(gen + "--fault ties-away" + kappa + " --declared 1");
  EXPECT_EQ(held.exit_code, 0);
  ExpectContains(held.out, "the declared kappa 1 holds\n");
  const Outcome missed = Shell(gen + "--fault ties-away" + kappa + " --declared 0");
  EXPECT_EQ(missed.exit_code, 1);
  ExpectContains(missed.out, "the declared kappa 0 does not hold\n");
}

TEST_F(Oracle, PackCanBeCheckedWithoutItsCommand) {
  ASSERT_EQ(Numsim("oracle pack p --set p3109-minimal").exit_code, 0);
  const auto manifest = nlohmann::json::parse(Bytes(Path("p/manifest.json")));
  for (const auto& file : manifest["files"]) {
    const std::string path = file["path"];
    EXPECT_EQ(file["sha256"], Sha256Hex(Path("p/" + path))) << path;
  }
  const Outcome good = Numsim("oracle check --pack p");
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  ExpectContains(good.out, "cases, all right");
  // The command in the manifest writes the very file.
  const std::string command = manifest["files"][0]["command"];
  const std::string path = manifest["files"][0]["path"];
  EXPECT_TRUE(Output(command.substr(command.find(' ') + 1)) == Bytes(Path("p/" + path)));
  // A second pack has the same bytes; a pack is never written over.
  ASSERT_EQ(Numsim("oracle pack q --set p3109-minimal").exit_code, 0);
  EXPECT_EQ(Shell("diff -r p q").exit_code, 0);
  const Outcome again = Numsim("oracle pack q --set p3109-minimal");
  EXPECT_EQ(again.exit_code, 2);
  ExpectContains(again.err, "not empty");
  EXPECT_THAT(Bytes(Path("p/README.md")), Not(HasSubstr("conforms")));
}

TEST_F(Oracle, AccumulatorsListsEveryNamedRule) {
  const std::vector<std::string> lines = Numsim("oracle accumulation-modes").Lines();
  const auto json = nlohmann::json::parse(Output("oracle accumulation-modes --json"));
  ASSERT_EQ(lines.size(), AccumulationModeTable().size() + 1);  // below a heading
  ASSERT_EQ(json.size(), AccumulationModeTable().size());
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const std::string page = Bytes(std::filesystem::path(root) / "docs/oracle.md");
  size_t i = 0;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    const std::string& line = lines[i + 1];
    EXPECT_TRUE(line.starts_with(fmt::format("{} ", row.name))) << line;
    const std::string evidence = row.measured ? "measured" : "reported";
    for (const std::string& part :
         {DefinitionText(row.mode), evidence, std::string(row.operands)}) {
      ExpectContains(line, " " + part + " ");
    }
    ExpectContains(line, std::string(row.note));
    EXPECT_EQ(json[i]["name"], row.name);
    EXPECT_EQ(json[i]["rule"], DefinitionText(row.mode));
    EXPECT_EQ(json[i]["evidence"], evidence);
    EXPECT_EQ(json[i]["measured_inner"], row.measured_inner);
    EXPECT_EQ(json[i]["source"], row.source);
    ExpectContains(page, fmt::format("`{}`", row.name));
    ++i;
  }
}

// The example of docs/oracle.md.
TEST_F(Oracle, DotTakesTheRuleOfADevice) {
  const std::string dot = "--op dot --format e4m3fn --to fp32 --length 4 --accumulation-mode ";
  const std::string answer = "echo 6C 3E 37 11 AE DD 7E 34 | $numsim oracle answer " + dot;
  EXPECT_EQ(Shell(answer + "exact").out, "6C 3E 37 11 AE DD 7E 34 43A64360 00\n");
  EXPECT_EQ(Shell(answer + "hopper-fp8-fast").out, "6C 3E 37 11 AE DD 7E 34 43A64000 00\n");
  EXPECT_EQ(Check("6C 3E 37 11 AE DD 7E 34 43A64000\n", dot + "hopper-fp8-fast").exit_code, 0);
  EXPECT_EQ(Check("6C 3E 37 11 AE DD 7E 34 43A64360\n", dot + "hopper-fp8-fast").exit_code, 1);
  const Outcome unknown = Numsim("oracle gen " + dot + "hopper-fp4");
  EXPECT_EQ(unknown.exit_code, 2);
  ExpectContains(unknown.err,
                 "--accumulation-mode: accumulator 'hopper-fp4' is neither exact nor FORMAT");
  ExpectContains(unknown.err, "hopper-mma-fp8");
}

// The example of docs/oracle.md: two blocks of MXFP4 under the unit and under scaled sums of blocks.
TEST_F(Oracle, DotTakesTheScalesOfAUnit) {
  const std::string dot =
      "--op dot --format e4m3fn --scale-format e8m0fnu --to fp32 --length 33 --accumulation-mode ";
  std::string row;
  for (int i = 0; i < 33; ++i) row += i == 0 || i == 32 ? "38 " : "00 ";
  for (int i = 0; i < 33; ++i) row += "38 ";
  row += "7F 66 7F 7F";  // 1 and, in the second block, 2^-25
  const auto answer = [&](const std::string& mode) {
    return Shell("echo " + row + " | $numsim oracle answer " + dot + mode).out;
  };
  EXPECT_THAT(answer("mxf8f6f4"), HasSubstr(" 3F800000 "));
  EXPECT_THAT(answer("exact"), HasSubstr(" 3F800000 "));
  row.replace(row.find("66 7F"), 2, "67");  // 2^-24: above the cut, below float32
  EXPECT_THAT(answer("mxf8f6f4"), HasSubstr(" 3F800000 "));
  row.replace(row.find("67 7F"), 2, "68");
  EXPECT_THAT(answer("mxf8f6f4"), HasSubstr(" 3F800001 "));
  const Outcome bare = Numsim(
      "oracle gen --op dot --format e4m3fn --to fp32 --length 4 "
      "--accumulation-mode mxf8f6f4");
  EXPECT_EQ(bare.exit_code, 2);
  ExpectContains(bare.err, "needs --scale-format e8m0fnu");
}

TEST_F(Oracle, FullOutputDeviceIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Outcome outcome =
      RunProgram(Directory(), Words("oracle gen " + kAdd + " --level full"), {}, "/dev/full");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(outcome.err.starts_with("numsim: ")) << outcome.err;
}

}  // namespace
}  // namespace numsim::apps
