#include "experiments/claims/catalogue.h"

namespace numsim::experiments {

const std::vector<PaperItem>& PaperItems() {
  static const std::vector<PaperItem> items = [] {
    std::vector<PaperItem> all;
    for (const auto paper : {SwitchBackItems(), FishmanItems(), Seed003Items(), Fp4Items()}) {
      all.insert(all.end(), paper.begin(), paper.end());
    }
    return all;
  }();
  return items;
}

}  // namespace numsim::experiments
