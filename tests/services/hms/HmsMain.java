// The stock Hive Metastore, 2.3 or 3.1, with what a test needs: the tables of locks and transactions, which the metastore's automatic schema
// leaves out, and the housekeeping of dead clients' locks, whose scheduler is in another jar. Runs on both versions by reflection.
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

public class HmsMain {
    public static void main(String[] args) throws Exception {
        Object conf;
        Class<?> confType;
        try { // Hive 3: the standalone metastore
            confType = Class.forName("org.apache.hadoop.conf.Configuration");
            conf = Class.forName("org.apache.hadoop.hive.metastore.conf.MetastoreConf").getMethod("newMetastoreConf").invoke(null);
        } catch (ClassNotFoundException e) { // Hive 2.3
            confType = Class.forName("org.apache.hadoop.hive.conf.HiveConf");
            conf = confType.getConstructor(Class.class).newInstance(HmsMain.class);
        }
        Class.forName("org.apache.hadoop.hive.metastore.txn.TxnDbUtil").getMethod("prepDb", confType).invoke(null, conf);
        Object store = Class.forName("org.apache.hadoop.hive.metastore.txn.TxnUtils").getMethod("getTxnStore", confType).invoke(null, conf);
        Method timeOut = Class.forName("org.apache.hadoop.hive.metastore.txn.TxnStore").getMethod("performTimeOuts");
        Thread keeper = new Thread(() -> keepHouse(store, timeOut));
        keeper.setDaemon(true);
        keeper.start();
        Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStore").getMethod("main", String[].class).invoke(null, (Object) args);
    }

    // What AcidHouseKeeperService does.
    private static void keepHouse(Object store, Method timeOut) {
        while (true) {
            try {
                Thread.sleep(1000);
                timeOut.invoke(store);
            } catch (InterruptedException e) {
                return;
            } catch (InvocationTargetException | IllegalAccessException e) {
                System.err.println("housekeeping: " + e.getCause());
            }
        }
    }
}
