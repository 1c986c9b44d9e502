import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

// enqueue URL N | work URL N
final class Quartz {
  public static final class Noop implements Job {
    @Override
    public void execute(JobExecutionContext context) {
      Tally.started(Integer.parseInt(context.getJobDetail().getKey().getName()));
    }
  }

  // A clustered store, and what its documentation gives for throughput: as many triggers at once as there are threads,
  // acquired within the lock.
  private static Properties settings(String url) {
    var p = new Properties();
    p.setProperty("org.quartz.scheduler.instanceName", "versus");
    p.setProperty("org.quartz.scheduler.instanceId", "AUTO");
    p.setProperty("org.quartz.scheduler.batchTriggerAcquisitionMaxCount", "25");
    p.setProperty("org.quartz.threadPool.class", "org.quartz.simpl.SimpleThreadPool");
    p.setProperty("org.quartz.threadPool.threadCount", "25");
    p.setProperty("org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX");
    p.setProperty("org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate");
    p.setProperty("org.quartz.jobStore.isClustered", "true");
    p.setProperty("org.quartz.jobStore.acquireTriggersWithinLock", "true");
    p.setProperty("org.quartz.jobStore.misfireThreshold", "3600000");
    p.setProperty("org.quartz.jobStore.dataSource", "ds");
    p.setProperty("org.quartz.dataSource.ds.provider", "hikaricp");
    p.setProperty("org.quartz.dataSource.ds.driver", "org.postgresql.Driver");
    p.setProperty("org.quartz.dataSource.ds.URL", "jdbc:" + url.replace("postgres@", ""));
    p.setProperty("org.quartz.dataSource.ds.user", "postgres");
    p.setProperty("org.quartz.dataSource.ds.password", "");
    p.setProperty("org.quartz.dataSource.ds.maxConnections", "30");
    return p;
  }

  private static void makeTables(String url) throws Exception {
    try (var in = Scheduler.class.getResourceAsStream("/org/quartz/impl/jdbcjobstore/tables_postgres.sql");
        var pool = Tally.pool(url, 1);
        var connection = pool.getConnection();
        var statement = connection.createStatement()) {
      statement.execute(new String(in.readAllBytes(), StandardCharsets.UTF_8));
    }
  }

  public static void main(String[] arguments) throws Exception {
    final int n = Integer.parseInt(arguments[2]);
    if (arguments[0].equals("enqueue")) {
      makeTables(arguments[1]);
      Scheduler scheduler = new StdSchedulerFactory(settings(arguments[1])).getScheduler();
      for (int from = 0; from < n; from += 1000) {
        Map<JobDetail, Set<? extends Trigger>> jobs = new HashMap<>();
        for (int k = from; k < Math.min(n, from + 1000); k++) {
          jobs.put(JobBuilder.newJob(Noop.class).withIdentity("" + k, "noop").build(),
              Set.of(TriggerBuilder.newTrigger().withIdentity("" + k, "noop").startNow().build()));
        }
        scheduler.scheduleJobs(jobs, false);
      }
      scheduler.shutdown();
      System.exit(0);
    }
    Tally.expect(n);
    new StdSchedulerFactory(settings(arguments[1])).getScheduler().start();
    Tally.watch();
  }
}
