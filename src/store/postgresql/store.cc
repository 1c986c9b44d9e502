#include "store/postgresql/store.h"

#include "base/fault.h"

namespace matins::postgresql {

PostgresStore::PostgresStore(ConnectionOptions options, absl::string_view schema,
                             std::unique_ptr<Listener> listener)
    : session_(std::move(options), schema), listener_(std::move(listener)) {
  session_.connection.set_by_keys();
}

}  // namespace matins::postgresql
