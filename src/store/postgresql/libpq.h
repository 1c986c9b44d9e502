// libpq's functions, loaded when the first connection asks for them (base/client_library.h). For
// sources only: it brings libpq's own header.
#ifndef MATINS_STORE_POSTGRESQL_LIBPQ_H_
#define MATINS_STORE_POSTGRESQL_LIBPQ_H_

#include <libpq-fe.h>

#include "absl/status/status.h"

// clang-format off
#define MATINS_LIBPQ_FUNCTIONS(F)                                                              \
  F(PQbackendPID) F(PQclear) F(PQcmdTuples) F(PQconnectPoll) F(PQconnectStartParams)           \
  F(PQconnectdb) F(PQconninfoFree) F(PQconninfoParse) F(PQconsumeInput)                        \
  F(PQenterPipelineMode) F(PQerrorMessage) F(PQexec) F(PQexecParams) F(PQfinish) F(PQflush)    \
  F(PQfreemem) F(PQgetResult) F(PQgetisnull) F(PQgetlength) F(PQgetvalue) F(PQisBusy)          \
  F(PQnfields) F(PQnotifies) F(PQntuples) F(PQpipelineSync) F(PQresultErrorField)              \
  F(PQresultStatus) F(PQsendPrepare) F(PQsendQueryParams) F(PQsendQueryPrepared)               \
  F(PQsetNoticeProcessor) F(PQsetnonblocking) F(PQsocket) F(PQstatus) F(PQtransactionStatus)
// clang-format on

namespace matins::postgresql {

struct Libpq {
#define MATINS_LIBPQ_MEMBER(name) decltype(&::name) name = nullptr;
  MATINS_LIBPQ_FUNCTIONS(MATINS_LIBPQ_MEMBER)
#undef MATINS_LIBPQ_MEMBER
};

// Loads it, once a process; asked before the first use of Pq(). Errors: as LoadClientLibrary's.
absl::Status LoadLibpq();
const Libpq& Pq();

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_LIBPQ_H_
