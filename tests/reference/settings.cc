#include "tests/reference/oracle.h"

namespace oracle {
namespace {

constexpr Policy kPolicies[] = {Policy::kNonsaturate, Policy::kSaturate, Policy::kPropagate};

const char* ToString(Mode mode) {
  switch (mode) {
    case Mode::kNearestEven:
      return "rne";
    case Mode::kNearestAway:
      return "rna";
    case Mode::kTowardZero:
      return "rtz";
    case Mode::kUp:
      return "rtp";
    case Mode::kDown:
      return "rtn";
    case Mode::kToOdd:
      return "odd";
    case Mode::kStochastic:
      break;
  }
  return "sr";
}

}  // namespace

std::vector<Setting> DeterministicSettings() {
  std::vector<Setting> settings;
  for (Mode mode : {Mode::kNearestEven,
                    Mode::kNearestAway,
                    Mode::kTowardZero,
                    Mode::kUp,
                    Mode::kDown,
                    Mode::kToOdd}) {
    for (Policy policy : kPolicies) settings.push_back({.mode = mode, .policy = policy});
  }
  return settings;
}

std::vector<Setting> StochasticSettings() {
  std::vector<Setting> settings;
  size_t i = 0;
  for (Variant variant : {Variant::kA, Variant::kB, Variant::kC}) {
    for (int bits : {1, 4, 13, 23, 31, 32}) {
      settings.push_back({Mode::kStochastic, kPolicies[i++ % 3], variant, bits});
    }
    // 32 bits with the policy of every command's default, too.
    settings.push_back({Mode::kStochastic, Policy::kNonsaturate, variant, 32});
  }
  return settings;
}

std::vector<Setting> AllSettings() {
  std::vector<Setting> settings = DeterministicSettings();
  for (const Setting& setting : StochasticSettings()) settings.push_back(setting);
  return settings;
}

std::string Describe(const Setting& setting) {
  constexpr const char* kPolicyNames[] = {"nonsaturate", "saturate", "propagate"};
  std::string text = ToString(setting.mode);
  if (setting.mode == Mode::kStochastic) {
    text += {' ', "abc"[static_cast<int>(setting.variant)], ' '};
    text += std::to_string(setting.random_bits);
  }
  return text + ' ' + kPolicyNames[static_cast<int>(setting.policy)];
}

}  // namespace oracle
