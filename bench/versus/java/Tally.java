// How often handlers were started and when: told as lines of JSON on standard output.
final class Tally {
  private static boolean[] seen;
  private static int count;
  private static double first;
  private static double last;

  static double now() {
    java.time.Instant t = java.time.Instant.now();
    return t.getEpochSecond() * 1e3 + t.getNano() / 1e6;
  }

  static synchronized void started(int k) {
    last = now();
    if (count++ == 0) first = last;
    if (seen[k]) fail(new IllegalStateException("job " + k + " was started twice"));
    seen[k] = true;
  }

  private static synchronized String line() {
    return "{\"count\":" + count + ",\"first\":" + String.format(java.util.Locale.ROOT, "%.3f", first) + ",\"last\":"
        + String.format(java.util.Locale.ROOT, "%.3f", last) + "}";
  }

  static void expect(int n) {
    seen = new boolean[n];
  }

  // Tells until the process is ended.
  static void watch() throws InterruptedException {
    System.out.println("{\"ready\":0}");
    String told = "";
    while (true) {
      Thread.sleep(20);
      String line = line();
      if (!line.equals(told) && count > 0) System.out.println(line);
      told = line;
    }
  }

  static void fail(Throwable what) {
    what.printStackTrace();
    Runtime.getRuntime().halt(1);
  }

  static com.zaxxer.hikari.HikariDataSource pool(String url, int size) {
    var config = new com.zaxxer.hikari.HikariConfig();
    config.setJdbcUrl("jdbc:" + url.replace("postgres@", "") + "?user=postgres");
    config.setMaximumPoolSize(size);
    return new com.zaxxer.hikari.HikariDataSource(config);
  }
}
