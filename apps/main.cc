// The numsim program: parses the command line, runs one command, and converts errors to exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/suggestion.h"
#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/base/printable.h"
#include "numsim/base/thread_limit.h"
#include "numsim/formats/format_names.h"

namespace numsim::apps {

bool Program::Has(std::string_view word) const {
  return std::find(command_line.begin(), command_line.end(), word) != command_line.end();
}

void Choose(Program& program, CLI::App* sub, std::function<int()> work) {
  sub->callback([&program, work = std::move(work)] { program.chosen = work; });
}

void Example(CLI::App* sub, const std::string& text) { sub->footer("Example:\n  " + text); }

CLI::Validator Unsigned64() {
  return CLI::Validator(
      [](std::string& text) {
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stop, status] = std::from_chars(text.data(), end, value);
        const bool good = !text.empty() && status == std::errc() && stop == end;
        return good ? std::string() : fmt::format("{} is not a whole number below 2^64", text);
      },
      "UNSIGNED");
}

CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? "must not be empty" : std::string(); }, "TEXT");
}

namespace {

// Returns the file that a path leads to, which need not exist, also through links.
std::filesystem::path FileOf(const std::string& text) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(text, error);
  if (error) path = text;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path.lexically_normal() : resolved;
}

}  // namespace

bool SameFile(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && FileOf(a) == FileOf(b);
}

void CheckKeepsInputs(std::string_view option,
                      const std::string& out,
                      std::initializer_list<std::string> inputs) {
  for (const std::string& input : inputs) {
    if (SameFile(out, input)) throw Error::Format("{}: {} is an input", option, out);
  }
}

namespace {

constexpr int kBadInput = 2;
constexpr size_t kLongestMessage = 1000;  // of the parser, which repeats arguments

// Says why nothing was done. Where stderr cannot be written, the exit code alone says so.
int Fail(const std::string& message) {
  std::fputs(fmt::format("numsim: {}\n", PrintableMessage(message)).c_str(), stderr);
  return kBadInput;
}

// Returns `status`, or the exit code of a failure if standard output could not be written.
int Flushed(int status) {
  std::cout.flush();
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  return failed ? Fail("standard output: cannot write") : status;
}

struct GlobalOptions {
  std::string backend;
  int threads = 0;
};

void AddGlobalOptions(CLI::App& app, GlobalOptions& options) {
  app.add_option("--backend",
                 options.backend,
                 "Backend of the kernels, one of `numsim backends` (default: NUMSIM_BACKEND, else "
                 "the best available)");
  app.add_option("--threads",
                 options.threads,
                 "Number of threads (default: OMP_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, kMostThreads));
}

void Apply(const GlobalOptions& options) {
  if (options.threads > 0) SetThreadCount(options.threads);
  ThreadCount();  // checks OMP_NUM_THREADS before any work
  if (!options.backend.empty()) {
    ForceBackend(options.backend);
  } else {
    ForceBackendFromEnvironment();
  }
}

// Returns the arguments for CLI11, the last one first. CLI11 would parse "-inf" as options; a
// preceding blank makes it a value.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string text = argv[i];
    const bool number = text == "-inf" || text == "-infinity" || text == "-nan";
    arguments.push_back(number ? " " + text : text);
  }
  return arguments;
}

// Returns a message about the argument that is missing after the last command given.
std::string MissingCommand(const CLI::App& app) {
  const CLI::App* parent = &app;
  std::string what = "COMMAND";
  for (
      const CLI::App* sub :
      app.get_subcommands()) {  // only those given: `run`, `pilot`, `tune`, `sweep`, `oracle` or `tokenizer`
    parent = sub;
    const bool of_experiment =
        sub->get_name() == "run" || sub->get_name() == "pilot" || sub->get_name() == "tune";
    what = of_experiment                ? "EXPERIMENT"
           : sub->get_name() == "sweep" ? "EXPERIMENT or COMMAND of sweep"
                                        : "COMMAND of " + sub->get_name();
  }
  std::string names;
  for (const CLI::App* sub : parent->get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + sub->get_name();
  }
  return fmt::format("{} is missing; expected one of: {}", what, names);
}

void AddCommands(Program& program) {
  AddListCommand(program);
  AddDescribeCommand(program);
  AddClaimsCommand(program);
  AddRunCommand(program);
  AddPilotCommand(program);
  AddTuneCommand(program);
  AddMergeCommand(program);
  AddSweepCommand(program);
  AddPlotCommand(program);
  AddTableCommand(program);
  AddDemoCommand(program);
  AddFormatsCommand(program);
  AddInspectCommand(program);
  AddCastCommand(program);
  AddDequantizeCommand(program);
  AddGemmCommand(program);
  AddExplainCommand(program);
  AddUpdateCommand(program);
  AddTrainCommand(program);
  AddTokenizerCommand(program);
  AddCompareCommand(program);
  AddStatsCommand(program);
  AddBackendsCommand(program);
  AddOracleCommand(program);
}

// Parses the command line and runs the command. Throws Error and other exceptions.
int ParseAndRun(int argc, char** argv) {
  CLI::App app{"numsim: low-precision number formats, rounding and training experiments", "numsim"};
  app.set_version_flag("--version", fmt::format("numsim {} ({})", BuildVersion(), BuildCommit()));
  app.fallthrough();
  GlobalOptions options;
  AddGlobalOptions(app, options);
  Program program{app, std::vector<std::string>(argv, argv + argc), {}};
  AddCommands(program);
  try {
    app.parse(Arguments(argc, argv));
  } catch (const CLI::Success& help) {
    return Flushed(app.exit(help));  // --help, --version
  } catch (const CLI::ParseError& error) {
    const std::string hint = Suggestion(app);
    return Fail(fmt::format("{}{} (see --help)",
                            Printable(error.what(), kLongestMessage),
                            hint.empty() ? "" : "; " + Printable(hint)));
  }
  if (!program.chosen) return Fail(MissingCommand(app));
  Apply(options);
  return Flushed(program.chosen());
}

int Main(int argc, char** argv) {
  // A limit on the size of files is then an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  SetUserInterface(UserInterface::kProgram);
  PrintFormatNotes();
  try {
    return ParseAndRun(argc, argv);
  } catch (const Error& error) {
    return Fail(error.what());
  } catch (const std::bad_alloc&) {
    return Fail("out of memory");
  } catch (const std::filesystem::filesystem_error& error) {
    return Fail(error.what());
  } catch (const std::system_error&) {  // from fmt
    return Fail("standard output: cannot write");
  } catch (const std::exception& error) {
    return Fail(error.what());
  }
}

}  // namespace
}  // namespace numsim::apps

int main(int argc, char** argv) {
  // libgomp ends the process with code 1 when it gets no thread from the system. That code is for checks
  // that failed.
  static bool returns = false;
  std::atexit([] {
    if (!returns) std::_Exit(numsim::apps::kBadInput);
  });
  const int code = numsim::apps::Main(argc, argv);
  returns = true;
  return code;
}
