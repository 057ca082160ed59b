// The numsim program: parses the command line, runs one command, turns errors into exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "apps/command.h"
#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/kernels/simd_target.h"

namespace numsim::apps {

void Choose(Program& program, CLI::App* sub, std::function<int()> work) {
  sub->callback([&program, work = std::move(work)] { program.chosen = work; });
}

void Example(CLI::App* sub, const std::string& text) { sub->footer("Example:\n  " + text); }

namespace {

constexpr int kBadInput = 2;

int Fail(const std::string& message) {
  fmt::print(stderr, "numsim: {}\n", message);
  return kBadInput;
}

struct GlobalOptions {
  std::string backend;
  int threads = 0;
};

void AddGlobalOptions(CLI::App& app, GlobalOptions& options) {
  app.add_option("--backend",
                 options.backend,
                 "Backend of the kernels (see `numsim backends`); NUMSIM_BACKEND does the same");
  app.add_option("--threads", options.threads, "Threads (default: OMP_NUM_THREADS or all cores)")
      ->check(CLI::Range(1, 4096));
}

void Apply(const GlobalOptions& options) {
  if (options.threads > 0) SetThreadCount(options.threads);
  if (!options.backend.empty()) {
    ForceBackend(options.backend);
  } else {
    ForceBackendFromEnvironment();
  }
}

int Main(int argc, char** argv) {
  CLI::App app{"numsim: low-precision number formats, rounding and training experiments", "numsim"};
  app.set_version_flag("--version", fmt::format("numsim {} ({})", BuildVersion(), BuildCommit()));
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions options;
  AddGlobalOptions(app, options);
  Program program{app, std::vector<std::string>(argv, argv + argc), {}};
  AddListCommand(program);
  AddDescribeCommand(program);
  AddRunCommand(program);
  AddMergeCommand(program);
  AddPlotCommand(program);
  AddFormatsCommand(program);
  AddInspectCommand(program);
  AddCastCommand(program);
  AddStatsCommand(program);
  AddBackendsCommand(program);
  try {
    app.parse(argc, argv);
    Apply(options);
    return program.chosen();
  } catch (const CLI::Success& help) {
    return app.exit(help);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return Fail(fmt::format("{} (see --help)", error.what()));
  } catch (const Error& error) {
    return Fail(error.what());
  } catch (const std::bad_alloc&) {
    return Fail("out of memory");
  }
}

}  // namespace
}  // namespace numsim::apps

int main(int argc, char** argv) { return numsim::apps::Main(argc, argv); }
