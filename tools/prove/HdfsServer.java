import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one name node and one data node over FOLDER: FOLDER PORT format|open. It ends with standard input. */
public final class HdfsServer {
    public static void main(String[] given) throws Exception {
        Configuration settings = new Configuration();
        settings.set("hdfs.minidfs.basedir", given[0]);
        settings.set("dfs.permissions.enabled", "false");
        settings.set("dfs.namenode.safemode.extension", "0");
        settings.set("dfs.blockreport.initialDelay", "0");
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings)
            .nameNodePort(Integer.parseInt(given[1])).numDataNodes(1).format(given[2].equals("format")).build();
        cluster.waitActive();
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) { }
        Runtime.getRuntime().halt(0);
    }
}
