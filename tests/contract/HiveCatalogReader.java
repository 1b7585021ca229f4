// Iceberg's own Java HiveCatalog, the one inside Spark and Flink, on tables that Sluice writes. Prints one line of JSON.
//   HiveCatalogReader URI WAREHOUSE DATABASE.TABLE read          columns, snapshots and live files with their sequence numbers, as Java sees them
//   HiveCatalogReader URI WAREHOUSE DATABASE.TABLE set N         N commits of a table property, one after another, by Java's own commit and lock
//   HiveCatalogReader URI WAREHOUSE DATABASE.TABLE create        a table made by Java: (id long key, region string, total decimal(12, 2))
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;

public class HiveCatalogReader {
    public static void main(String[] args) throws Exception {
        HiveCatalog catalog = new HiveCatalog();
        catalog.setConf(new Configuration());
        catalog.initialize("hive", Map.of("uri", args[0], "warehouse", args[1]));
        TableIdentifier name = TableIdentifier.parse(args[2]);
        switch (args[3]) {
            case "create" -> create(catalog, name);
            case "set" -> set(catalog.loadTable(name), Integer.parseInt(args[4]));
            default -> { }
        }
        System.out.println(describe(catalog.loadTable(name)));
        catalog.close();
        System.exit(0);
    }

    private static void create(HiveCatalog catalog, TableIdentifier name) {
        Schema schema = new Schema(
            java.util.List.of(
                Types.NestedField.required(1, "id", Types.LongType.get()),
                Types.NestedField.optional(2, "region", Types.StringType.get()),
                Types.NestedField.optional(3, "total", Types.DecimalType.of(12, 2))),
            java.util.Set.of(1));
        catalog.createTable(name, schema, PartitionSpec.unpartitioned(), Map.of("format-version", "2", "made_by", "java"));
    }

    private static void set(Table table, int commits) {
        for (int number = 0; number < commits; number++) {
            table.updateProperties().set("java." + number, "1").set("commit.retry.num-retries", "100").commit();
        }
    }

    private static String describe(Table table) throws Exception {
        StringBuilder json = new StringBuilder("{\"columns\": [");
        String comma = "";
        for (Types.NestedField field : table.schema().columns()) {
            json.append(comma).append('"').append(field.name()).append(' ').append(field.type()).append('"');
            comma = ", ";
        }
        int snapshots = 0;
        for (var ignored : table.snapshots()) {
            snapshots++;
        }
        long javas = table.properties().keySet().stream().filter(key -> key.startsWith("java.")).count();
        json.append("], \"snapshots\": ").append(snapshots).append(", \"javas\": ").append(javas).append(", \"files\": {");
        Map<String, String> files = new TreeMap<>();
        try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
            for (FileScanTask task : tasks) {
                files.put(task.file().path().toString(), "[" + task.file().recordCount() + ", " + task.deletes().size() + "]");
            }
        }
        comma = "";
        for (Map.Entry<String, String> file : files.entrySet()) {
            json.append(comma).append('"').append(file.getKey()).append("\": ").append(file.getValue());
            comma = ", ";
        }
        return json.append("}}").toString();
    }
}
