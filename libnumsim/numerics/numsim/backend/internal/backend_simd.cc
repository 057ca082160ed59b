#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>

#include "hwy/targets.h"
#include "numsim/backend/backend.h"
#include "numsim/backend/device.h"
#include "numsim/backend/internal/backend_switch.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/backend/internal/backend_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
int64_t CompiledTarget() { return HWY_TARGET; }
}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {
namespace {

HWY_EXPORT(CompiledTarget);

std::atomic<bool> g_scalar = false;
std::atomic<bool> g_device = false;

constexpr std::string_view kDevice = "cuda";

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

// Returns the backend name of a Highway target. Highway's fallback for processors without vectors,
// "scalar", is called "none" here because "scalar" names numsim's reference backend.
std::string TargetText(int64_t target) {
  const std::string name = LowerCase(hwy::TargetName(target));
  return name == "scalar" ? "none" : name;
}

// Returns the targets that the processor supports. Undoes an earlier ForceBackend to see them all.
std::vector<int64_t> UsableTargets() {
  hwy::SetSupportedTargetsForTest(0);
  return hwy::SupportedAndGeneratedTargets();
}

// Returns the target whose code Highway's dispatch runs.
int64_t ActiveTarget() {
  if (!hwy::GetChosenTarget().IsInitialized()) {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  return HWY_DYNAMIC_DISPATCH(CompiledTarget)();
}

void Activate(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Does what ForceBackend does, in a BackendSwitch.
void Force(std::string_view name) {
  const int64_t active = ActiveTarget();
  if (name == kDevice) {
    if (!DeviceAvailable()) {
      throw Error::Format("backend 'cuda' is not available here: {}", DeviceUnavailable());
    }
    Activate(UsableTargets().front());
    g_scalar = false;
    g_device = true;
    return;
  }
  std::string valid = "scalar";
  for (const int64_t target : UsableTargets()) {
    if (TargetText(target) == name) {
      g_scalar = false;
      g_device = false;
      Activate(target);
      return;
    }
    valid += ", " + TargetText(target);
  }
  if (DeviceAvailable()) valid += ", cuda";
  if (name != "scalar") {
    Activate(active);  // UsableTargets() reset it
    throw Error::Format("backend '{}' is not available here; available: {}{}",
                        name,
                        valid,
                        DidYouMean(name, valid));
  }
  g_scalar = true;
  g_device = false;
}

}  // namespace

std::vector<std::string> AvailableBackends() {
  const BackendSwitch alone;
  const std::string active(BackendName());
  std::vector<std::string> names;
  for (const int64_t target : UsableTargets()) names.push_back(TargetText(target));
  names.push_back("scalar");
  if (DeviceAvailable()) names.emplace_back(kDevice);
  Force(active);
  return names;
}

void ForceBackend(std::string_view name) {
  const BackendSwitch alone;
  Force(name);
}

bool ForceBackendFromEnvironment() {
  const char* name = std::getenv("NUMSIM_BACKEND");
  if (name == nullptr || *name == '\0') return false;
  ForceBackend(name);
  return true;
}

std::string_view BackendName() {
  thread_local std::string name;
  if (g_scalar) return "scalar";
  if (g_device) return kDevice;
  name = TargetText(ActiveTarget());
  return name;
}

bool UsesScalarReference() noexcept { return g_scalar; }

bool UsesDevice() noexcept { return g_device; }

}  // namespace numsim
#endif  // HWY_ONCE
