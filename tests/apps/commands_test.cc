// `numsim list`, `describe`, `demo`, `backends`, `--help`, `--version`, and a small `run`.
#include <algorithm>
#include <fstream>

#include "experiments/runner/experiment.h"
#include "numsim/backend/backend.h"
#include "numsim/backend/device.h"
#include "numsim/base/build_info.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"
#include "tests/apps/program.h"

namespace numsim::apps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Commands : public ProgramTest {
 protected:
  // The backends that `numsim backends` lists, the active one first by its mark.
  static std::vector<std::string> Listed(const Outcome& outcome, std::string& active) {
    std::vector<std::string> names;
    for (const std::string& line : outcome.Lines()) {
      std::vector<std::string> words = Words(line);
      if (words.empty() || words[0] == "threads:") continue;
      if (line.find("not available") != std::string::npos) continue;
      if (words[0] == "*") {
        words.erase(words.begin());
        active = words[0];
      }
      names.push_back(words[0]);
    }
    return names;
  }
};

TEST_F(Commands, ListNamesEveryExperimentAndItsSource) {
  const std::string out = Output("list");
  for (const experiments::Experiment& e : experiments::AllExperiments()) {
    EXPECT_THAT(out, HasSubstr(e.name + " "));
    EXPECT_THAT(out, HasSubstr(e.title)) << e.name;
    EXPECT_THAT(out, HasSubstr(e.reproduces)) << e.name;
  }
}

TEST_F(Commands, ListAndDescribeResolveTheKeysOfSources) {
  const std::string list = Output("list");
  EXPECT_THAT(list, HasSubstr("\n[SwitchBack] M. Wortsman et al.: Stable and low-precision"));
  EXPECT_THAT(list, HasSubstr("2023\n"));
  EXPECT_THAT(list, HasSubstr("\n[Seed003] Low Precision Low LR\n"));
  const std::string moments = Output("describe moment-formats");
  EXPECT_THAT(moments, HasSubstr("[Fishman] M. Fishman, B. Chmiel, R. Banner, D. Soudry: Scaling"));
  EXPECT_THAT(moments, HasSubstr("arXiv:2409.12517"));
  EXPECT_THAT(moments, Not(HasSubstr("[SwitchBack]")));
}

TEST_F(Commands, DescribeAndHelpSayHowLongPresetsTake) {
  for (const std::string command : {"describe moment-formats", "run moment-formats --help"}) {
    const std::string out = Output(command);
    EXPECT_THAT(out, HasSubstr("ime on two cores, roughly: quick 3 min, ")) << command;
    EXPECT_THAT(out, HasSubstr("paper not timed")) << command;
  }
}

TEST_F(Commands, MistypedExperimentsAndPresetsGetASuggestion) {
  for (const std::string command :
       {"describe moment-format", "run moment-format", "merge moment-format a --out b"}) {
    const Outcome outcome = Numsim(command);
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("did you mean moment-formats?")) << command;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_THAT(Numsim("run linear-error --preset quik").err,
              HasSubstr("expected quick or paper; did you mean quick?"));
  EXPECT_THAT(Numsim("describe something-else").err, Not(HasSubstr("did you mean")));
}

TEST_F(Commands, ListOfNamesHasOnePerLine) {
  std::vector<std::string> names;
  for (const experiments::Experiment& e : experiments::AllExperiments()) names.push_back(e.name);
  EXPECT_EQ(Numsim("list --names").Lines(), names);
}

TEST_F(Commands, DemoRefusesWhatItDoesNotKnow) {
  const Outcome outcome = Numsim("demo --bad");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--bad"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(Commands, DescribeShowsOptionsAndColumns) {
  for (const experiments::Experiment& e : experiments::AllExperiments()) {
    const std::string out = Output("describe " + e.name);
    EXPECT_THAT(out, HasSubstr(e.description)) << e.name;
    for (const experiments::Option& option : e.options) {
      EXPECT_THAT(out, HasSubstr("--" + option.name + " "));
    }
    for (const experiments::TableSpec& table : e.tables) {
      EXPECT_THAT(out, HasSubstr(table.name + ".csv"));
      for (const experiments::Column& column : table.columns) {
        EXPECT_THAT(out, HasSubstr(column.name + " "));
      }
    }
  }
}

TEST_F(Commands, DescribeShowsThePresetsWithTheirValues) {
  const std::string three = Output("describe moment-formats");
  EXPECT_THAT(three,
              HasSubstr("options (quick with 4 seeds | small with 3 seeds | 100m with 3 seeds | "
                        "paper with 3 seeds | demo with 3 seeds)"));
  EXPECT_THAT(three, HasSubstr(" 2 | 4 | 12 | 12 | 2\n"));  // layers
  EXPECT_THAT(three, HasSubstr(" (none) | (none) | (none) | (none) | (none)\n"));
  EXPECT_THAT(three, HasSubstr("--rows FILE.csv, a row of final.csv per training\n"));
  const std::string two = Output("describe linear-error");
  EXPECT_THAT(two, HasSubstr("options (quick with 5 seeds | paper with 3 seeds)"));
}

TEST_F(Commands, RunRefusesAPresetThatTheExperimentDoesNotHave) {
  const Outcome outcome = Numsim("run linear-error --preset small --out result");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--preset \"small\": expected quick or paper"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(Path("result")));
}

TEST_F(Commands, BackendsListsTheLibrarysAndMarksTheActiveOne) {
  const std::vector<std::string> available = AvailableBackends();
  for (const std::string& name : available) {
    std::string active;
    const Outcome by_option = Numsim("backends --backend " + name);
    EXPECT_EQ(Listed(by_option, active), available);
    EXPECT_EQ(active, name);
    EXPECT_THAT(by_option.out, HasSubstr("active: --backend"));

    const Outcome by_variable = Numsim("backends", {{"NUMSIM_BACKEND", name}});
    EXPECT_EQ(Listed(by_variable, active), available);
    EXPECT_EQ(active, name);
    EXPECT_THAT(by_variable.out, HasSubstr("active: NUMSIM_BACKEND"));
  }
}

TEST_F(Commands, BackendOptionGoesBeforeTheEnvironment) {
  std::string active;
  Listed(Numsim("backends --backend scalar", {{"NUMSIM_BACKEND", AvailableBackends().front()}}),
         active);
  EXPECT_EQ(active, "scalar");
}

TEST_F(Commands, EmptyEnvironmentVariableIsNoChoice) {
  const Outcome outcome = Numsim("backends", {{"NUMSIM_BACKEND", ""}});
  EXPECT_THAT(outcome.out, HasSubstr("active: best available"));
}

TEST_F(Commands, BackendsTellsOfTheDevice) {
  std::string cuda;
  for (const std::string& line : Numsim("backends").Lines()) {
    if (line.starts_with("  cuda ")) cuda = line;
  }
  if (DeviceAvailable()) {
    EXPECT_THAT(cuda, HasSubstr(" multiprocessors, "));
    EXPECT_THAT(cuda, HasSubstr(" GiB, CUDA driver "));
    EXPECT_THAT(cuda, HasSubstr(", code for "));
    EXPECT_THAT(cuda, Not(HasSubstr("active")));  // never unless it is asked for
  } else {
    EXPECT_EQ(cuda, "  cuda    not available: " + DeviceUnavailable());
  }
}

// Without a device that it may see, on any machine.
TEST_F(Commands, BackendCudaWithoutADeviceIsRefusedAndSaysWhy) {
  const std::string reason =
      NUMSIM_HAVE_CUDA ? "no CUDA device: " : "this build has no CUDA kernels";
  const Environment hidden = {{"CUDA_VISIBLE_DEVICES", "-1"}};
  Environment forced = hidden;
  forced["NUMSIM_BACKEND"] = "cuda";
  for (const Outcome& outcome :
       {Numsim("backends --backend cuda", hidden), Numsim("backends", forced)}) {
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("backend 'cuda' is not available here: " + reason));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_THAT(Numsim("backends", hidden).out, HasSubstr("  cuda    not available: " + reason));
}

TEST_F(Commands, BackendsShowsTheThreads) {
  EXPECT_THAT(Output("backends --threads 3"), HasSubstr("threads: 3\n"));
  EXPECT_THAT(Output("--threads 3 backends"), HasSubstr("threads: 3\n"));
}

TEST_F(Commands, EveryCommandHasHelpWithAnExample) {
  EXPECT_THAT(Output("--help"), HasSubstr("Subcommands"));
  std::vector<std::string> commands = {"list",
                                       "describe",
                                       "run",
                                       "merge",
                                       "plot",
                                       "table",
                                       "demo",
                                       "formats",
                                       "inspect",
                                       "cast",
                                       "gemm",
                                       "explain",
                                       "update",
                                       "train",
                                       "compare",
                                       "stats",
                                       "backends"};
  for (const experiments::Experiment& e : experiments::AllExperiments()) {
    commands.push_back("run " + e.name);
  }
  for (const std::string& command : commands) {
    const std::string help = Output(command + " --help");
    EXPECT_THAT(help, HasSubstr("Example:\n  numsim " + Words(command)[0]));
    EXPECT_THAT(Output("--help"), HasSubstr("  " + Words(command)[0] + " ")) << command;
  }
}

TEST_F(Commands, VersionIsTheBuilds) {
  EXPECT_TRUE(Output("--version").starts_with(fmt::format("numsim {} ", BuildVersion())));
}

constexpr const char* kRun =
    "run update-fidelity --size 16 --per-decade 1 --lr-low 1e-2 --lr-high 0.1 --formats bf16 ";

TEST_F(Commands, RunWritesResultsAndSaysWhere) {
  const std::string out = Output(std::string(kRun) + "--out result");
  EXPECT_THAT(out, HasSubstr("written to result:"));
  EXPECT_FALSE(ReadCsv(Path("result") / "fidelity.csv").rows.empty());
  for (const char* const name : {"summary.txt", "manifest.json", "settings.json"}) {
    EXPECT_TRUE(std::filesystem::exists(Path("result") / name)) << name;
  }
}

TEST_F(Commands, RunTakesKeysOfTrainingsFromAFile) {
  std::ofstream(Path("mine.toml")) << "[model]\nlayers = 1\nnorm_epsilon = 1e-3\n";
  const std::string run =
      "run moment-formats --m fp32 --v fp32 --pairs none --text-size 16384 --width 8 --heads 1 "
      "--context 8 --batch 1 --steps 10 --warmup 0 --records 2 --valid-batches 1 --epsilon 1e-8 "
      "--seeds 1 ";
  Output(run + "--config mine.toml --set schedule.final=0.5 --out result");
  const std::string settings = ReadText(Path("result") / "settings.json");
  EXPECT_THAT(settings, HasSubstr("\"layers\": \"1\""));
  EXPECT_THAT(settings, HasSubstr("\"keys\": \"model.norm_epsilon=0.001;schedule.final=0.5\""));
  const Outcome refused = Numsim(run + "--set optimizer.update_from_stored=true --out other");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(
      refused.err,
      HasSubstr("--set optimizer.update_from_stored=true: the experiment sets this key itself"));
  EXPECT_FALSE(std::filesystem::exists(Path("other")));
}

TEST_F(Commands, RunJudgesTrainingsMadeElsewhere) {
  const std::string run =
      "run moment-formats --m fp32 --v e4m3fn --pairs none --text-size 16384 --width 16 --heads 1 "
      "--layers 1 --context 8 --batch 1 --steps 10 --warmup 0 --records 2 --epsilon 1e-5 --seeds 1 "
      "--update-from fresh --valid-batches 1 ";
  EXPECT_THAT(Output(run + "--rows-template t.csv --configs configs"),
              StartsWith("t.csv: 2 trainings, 0 of them filled\n"));
  for (const char* const number : {"0", "1"}) {
    Output(fmt::format("train configs/{0}.toml --out runs/{0}", number));
  }
  EXPECT_THAT(Output(run + "--rows-template rows.csv --collect runs/0 runs/1"),
              StartsWith("rows.csv: 2 trainings, 2 of them filled\n"));
  EXPECT_THAT(
      Output(run + "--rows rows.csv --out result"),
      AllOf(HasSubstr("Rows:       of trainings made elsewhere"), HasSubstr("written to result:")));
  for (const char* const wrong : {"--rows t.csv",
                                  "--rows rows.csv --lr 1e-2",
                                  "--rows rows.csv --shard 0/2",
                                  "--rows curves=rows.csv",
                                  "--rows absent.csv",
                                  "--collect runs/0"}) {
    const Outcome refused = Numsim(run + wrong + " --out other");
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_EQ(refused.Lines().size(), 0u) << wrong;
    EXPECT_FALSE(std::filesystem::exists(Path("other"))) << wrong;
  }
}

TEST_F(Commands, RunTakesAsManySeedsAsThePresetHas) {
  const std::string run =
      "run moment-formats --m fp32 --v fp32 --pairs none --text-size 16384 --layers 1 --width 8 "
      "--heads 1 --context 8 --batch 1 --steps 10 --warmup 0 --records 2 --valid-batches 1 "
      "--epsilon 1e-8 ";
  Output(run + "--out quick");
  EXPECT_EQ(ReadCsv(Path("quick") / "final.csv").rows.size(), 4u);
  Output(run + "--preset small --out small");
  EXPECT_EQ(ReadCsv(Path("small") / "final.csv").rows.size(), 3u);
  Output(run + "--preset small --seeds 1 --out one");
  EXPECT_EQ(ReadCsv(Path("one") / "final.csv").rows.size(), 1u);
  Output(run + "--seed 3 --out third");
  EXPECT_EQ(ReadCsv(Path("third") / "final.csv").Text(1, "seed"), "4");
}

TEST_F(Commands, RunRefusesADirectoryOfOtherSettings) {
  Output(std::string(kRun) + "--out result");
  const std::string before = Bytes(Path("result") / "fidelity.csv");
  const Outcome outcome = Numsim(std::string(kRun) + "--out result --seed 1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--seed"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(Bytes(Path("result") / "fidelity.csv"), before);
}

TEST_F(Commands, ShardsMergeToTheUnshardedResult) {
  Output(std::string(kRun) + "--out whole --threads 2");
  EXPECT_THAT(Output(std::string(kRun) + "--out s0 --shard 0/2"),
              HasSubstr("left to other shards"));
  EXPECT_FALSE(std::filesystem::exists(Path("s0") / "fidelity.csv"));
  const Outcome early = Numsim("merge update-fidelity s0 --out early");
  EXPECT_EQ(early.exit_code, 2);
  EXPECT_EQ(early.out, "");
  Output(std::string(kRun) + "--out s1 --shard 1/2 --threads 1 --backend scalar");
  Output("merge update-fidelity s0 s1 --out merged");
  for (const char* const name : {"fidelity.csv", "summary.txt"}) {
    EXPECT_EQ(Bytes(Path("merged") / name), Bytes(Path("whole") / name)) << name;
  }
}

TEST_F(Commands, PlotDrawsAgainFromTheCsv) {
  Output(std::string(kRun) + "--out result");
  const std::string summary = Bytes(Path("result") / "summary.txt");
  std::filesystem::remove(Path("result") / "summary.txt");
  Output("plot result");
  EXPECT_EQ(Bytes(Path("result") / "summary.txt"), summary);
}

TEST_F(Commands, TableShowsVerdictsAndMeansOrSaysWhatIsThere) {
  Output(std::string(kRun) + "--out result");
  EXPECT_THAT(Output("table result"), HasSubstr("\\begin{tabular}{llrlrllll}\n"));
  EXPECT_THAT(Output("table result --style markdown"), HasSubstr("| claim | contrast |"));
  Output("table result --style csv --out table.csv");
  EXPECT_THAT(Bytes(Path("table.csv")), ::testing::StartsWith("claim,contrast,estimate,low,high,"));
  const std::string condition = "table result --table fidelity --rows rule --values lr --where k";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"table result --table fidelity", "--rows and --values are missing"},
      {"table result --table fidelty --rows k --values k", "did you mean fidelity?"},
      {"table nowhere", "nowhere: is no directory"},
      {condition, "--where k: expected COLUMN=VALUE"}};
  for (const auto& [words, message] : wrong) {
    const Outcome outcome = Numsim(words);
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace numsim::apps
