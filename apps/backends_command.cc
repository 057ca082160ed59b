// `numsim backends`: what is present, what is active, what forced it.
#include <fmt/format.h>

#include <cstdlib>

#include "apps/command.h"
#include "numsim/base/parallel.h"
#include "numsim/kernels/simd_target.h"

namespace numsim::apps {

void AddBackendsCommand(Program& program) {
  CLI::App* sub =
      program.app.add_subcommand("backends", "List the backends of the kernels and the active one");
  Example(sub, "numsim backends --backend avx2");
  Choose(program, sub, [&program] {
    const std::string active(SimdTargetName());
    const char* variable = std::getenv("NUMSIM_BACKEND");
    const bool option = program.app.count("--backend") > 0;
    std::string reason = "best available";
    if (option) {
      reason = "--backend";
    } else if (variable != nullptr && *variable != '\0') {
      reason = "NUMSIM_BACKEND";
    }
    for (const std::string& name : AvailableBackends()) {
      const bool chosen = name == active;
      fmt::print("{} {:<8}{}\n", chosen ? "*" : " ", name, chosen ? " active: " + reason : "");
    }
    fmt::print("  {:<8} not built: this version has no CUDA kernels\n", "cuda");
    fmt::print("threads: {}\n", ThreadCount());
    return 0;
  });
}

}  // namespace numsim::apps
