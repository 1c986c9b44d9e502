// One store for many lanes, where one thread steps them all: a node of one job needs no more than
// one connection.
#ifndef MATINS_ENGINE_SHARED_STORE_H_
#define MATINS_ENGINE_SHARED_STORE_H_

#include <memory>

#include "store/store.h"

namespace matins {

// Every verb is `store`'s. Not thread-safe, whatever number of them there is.
std::unique_ptr<Store> ShareStore(std::shared_ptr<Store> store);

}  // namespace matins

#endif  // MATINS_ENGINE_SHARED_STORE_H_
