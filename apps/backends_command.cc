// `numsim backends`: lists the available backends and the active one with the reason.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/command.h"
#include "numsim/backend/backend.h"
#include "numsim/backend/device.h"
#include "numsim/base/parallel.h"

namespace numsim::apps {

namespace {

// Returns the reason why the active backend was selected.
std::string Reason(const Program& program) {
  const char* variable = std::getenv("NUMSIM_BACKEND");
  if (program.app.count("--backend") > 0) return "--backend";
  if (variable != nullptr && *variable != '\0') return "NUMSIM_BACKEND";
  return "best available";
}

// Returns a text such as "NVIDIA H200, sm_90, 132 multiprocessors, 140 GiB, CUDA driver 13.0,
// runtime 13.0, code for 90a".
std::string DeviceText() {
  if constexpr (NUMSIM_HAVE_CUDA) {
    const DeviceInfo& device = Device();
    return fmt::format(
        "{}, sm_{}, {} multiprocessors, {:.0f} GiB, CUDA driver {}, runtime {}, code for {}",
        device.name,
        device.compute_capability,
        device.multiprocessors,
        std::ldexp(static_cast<double>(device.memory_bytes), -30),
        device.driver,
        device.runtime,
        device.code);
  }
  return "";
}

}  // namespace

void AddBackendsCommand(Program& program) {
  CLI::App* sub =
      program.app.add_subcommand("backends", "List the backends of the kernels and the active one");
  Example(sub, "numsim backends --backend avx2");
  Choose(program, sub, [&program] {
    const std::string active(BackendName());
    for (const std::string& name : AvailableBackends()) {
      std::vector<std::string> remarks;
      if (name == active) remarks.push_back("active: " + Reason(program));
      if (name == "cuda") remarks.push_back(DeviceText());
      fmt::print("{} {:<8}{}\n", name == active ? "*" : " ", name, fmt::join(remarks, "; "));
    }
    if (!DeviceAvailable()) fmt::print("  {:<8}not available: {}\n", "cuda", DeviceUnavailable());
    fmt::print("threads: {}\n", ThreadCount());
    return 0;
  });
}

}  // namespace numsim::apps
