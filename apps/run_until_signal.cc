#include "apps/run_until_signal.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "apps/interruption.h"
#include "experiments/runner/shard_owner.h"
#include "numsim/base/error.h"

namespace numsim::apps {
namespace {

// Says how to go on after a signal, and returns the exit code. stdout may be closed by now; the exit
// code says the same.
int Stopped(const experiments::RunOptions& options, const std::string& what) {
  fmt::print("interrupted {}; finished trials are kept in {}; to resume: {}\n",
             what,
             options.out.string(),
             ResumeCommand(options.command));
  return kStoppedBySignal;
}

}  // namespace

std::optional<int> RunUntilSignal(experiments::RunOptions& options,
                                  double grace,
                                  const std::function<experiments::RunReport()>& work) {
  const InterruptScope scope;
  options.interrupted = &scope.Flag();
  const GraceTimer timer(scope.Flag(), grace, [&] {
    experiments::ReleaseShardsOfThisProcess(options.out);
    Stopped(options, "within a trial that takes longer than --grace");
    std::fflush(stdout);
    std::_Exit(kStoppedBySignal);
  });
  experiments::RunReport report;
  try {
    report = work();
  } catch (const Error& error) {
    // The signal may have ended gnuplot too. An error that has another cause comes again.
    if (!scope.Flag()) throw;
    fmt::print(stderr, "numsim: {}\n", error.what());
    return Stopped(options, "at an error");
  }
  if (!report.interrupted) return std::nullopt;
  return Stopped(options,
                 fmt::format("with {} of {} trials{} finished",
                             report.shard_total - report.shard_missing,
                             report.shard_total,
                             options.shard_count > 1 ? " of this shard" : ""));
}

}  // namespace numsim::apps
