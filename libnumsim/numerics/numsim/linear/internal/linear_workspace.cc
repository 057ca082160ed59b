#include "numsim/linear/internal/linear_workspace.h"

#include "numsim/backend/device_context.h"

namespace numsim {

LinearWorkspaces& LinearWorkspaces::At(Place place) {
  if (!place.IsHost()) return place.Context().Get<LinearWorkspaces>();
  static thread_local LinearWorkspaces of_thread;
  return of_thread;
}

}  // namespace numsim
