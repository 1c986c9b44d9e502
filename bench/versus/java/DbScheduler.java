import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerClient;
import com.github.kagkarlsson.scheduler.task.TaskInstance;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;

// enqueue URL N | work URL N
final class DbScheduler {
  private static final String TABLE = """
      create table scheduled_tasks (task_name text not null, task_instance text not null, task_data bytea,
        execution_time timestamptz not null, picked boolean not null, picked_by text, last_success timestamptz,
        last_failure timestamptz, consecutive_failures int, last_heartbeat timestamptz, version bigint not null,
        priority smallint, primary key (task_name, task_instance));
      create index execution_time_idx on scheduled_tasks (execution_time);
      create index last_heartbeat_idx on scheduled_tasks (last_heartbeat);
      create index priority_execution_time_idx on scheduled_tasks (priority desc, execution_time asc)""";

  public static void main(String[] arguments) throws Exception {
    final int n = Integer.parseInt(arguments[2]);
    var noop = Tasks.oneTime("noop").execute((instance, context) -> Tally.started(Integer.parseInt(instance.getId())));
    if (arguments[0].equals("enqueue")) {
      try (var pool = Tally.pool(arguments[1], 1)) {
        try (var connection = pool.getConnection(); var statement = connection.createStatement()) {
          statement.execute(TABLE);
        }
        var jobs = new ArrayList<TaskInstance<?>>();
        for (int k = 0; k < n; k++) jobs.add(noop.instance("" + k));
        SchedulerClient.Builder.create(pool, noop).build().scheduleBatch(jobs, Instant.now().minusSeconds(1));
      }
      return;
    }
    Tally.expect(n);
    // Its documentation's way to most throughput on PostgreSQL: rows are locked while they are fetched.
    Scheduler.create(Tally.pool(arguments[1], 52), noop).threads(50).pollUsingLockAndFetch(0.5, 4.0)
        .pollingInterval(Duration.ofMillis(100)).build().start();
    Tally.watch();
  }
}
