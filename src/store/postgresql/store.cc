#include "store/postgresql/store.h"

#include <utility>

namespace matins::postgresql {

PostgresStore::PostgresStore(std::unique_ptr<Session> session, std::unique_ptr<Listener> listener)
    : owned_(std::move(session)), session_(*owned_), listener_(std::move(listener)) {
  session_.connection.set_by_keys();
}

}  // namespace matins::postgresql
