// A Hadoop file system for s3 and s3a that keeps nothing: lets a metastore without hadoop-aws accept tables at s3://…. It only checks and
// makes the table's folder; Iceberg's files are not its business.
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class ObjectStoreStub extends FileSystem {
    private URI uri;
    private Path folder = new Path("/");

    @Override public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        setConf(conf);
        uri = URI.create(name.getScheme() + "://" + name.getAuthority());
        folder = new Path(uri + "/");
    }

    @Override public URI getUri() { return uri; }
    @Override public String getScheme() { return "s3"; }
    @Override protected void checkPath(Path path) { }
    @Override public FSDataInputStream open(Path path, int size) throws IOException { throw new FileNotFoundException(path.toString()); }
    @Override public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int size, short copies, long block, Progressable progress)
            throws IOException { return new FSDataOutputStream(OutputStream.nullOutputStream(), null); }
    @Override public FSDataOutputStream append(Path path, int size, Progressable progress) { throw new UnsupportedOperationException(); }
    @Override public boolean rename(Path from, Path to) { return true; }
    @Override public boolean delete(Path path, boolean recursive) { return true; }
    @Override public FileStatus[] listStatus(Path path) { return new FileStatus[0]; }
    @Override public void setWorkingDirectory(Path path) { folder = path; }
    @Override public Path getWorkingDirectory() { return folder; }
    @Override public boolean mkdirs(Path path, FsPermission permission) { return true; }
    @Override public FileStatus getFileStatus(Path path) {
        return new FileStatus(0, true, 1, 0, 0, 0, FsPermission.getDirDefault(), "u", "g", path.makeQualified(uri, folder));
    }
}
