//! Whether new tables can be put where they are to go.

use iceberg::io::FileIO;
use sluice_table::TableError;

/// Writes a file there, reads it and deletes it again; `None` means that the catalog or its namespaces choose the place of each table.
pub(crate) async fn check(file_io: &FileIO, place: Option<&str>, id: u128) -> Result<String, TableError> {
    let Some(place) = place else {
        return Ok("new tables go where the catalog puts them: nothing was tried".to_owned());
    };
    let location = format!("{}/sluice-validate-{id:032x}", place.trim_end_matches('/'));
    let wrong = |what: &str| format!("{what} in the warehouse (permission to read, write and delete there is needed): {location}");
    let written = file_io.new_output(&location).map_err(TableError::iceberg(wrong("writing")))?;
    written.write("sluice".into()).await.map_err(TableError::iceberg(wrong("writing")))?;
    let read = written.to_input_file().read().await.map_err(TableError::iceberg(wrong("reading")))?;
    file_io.delete(&location).await.map_err(TableError::iceberg(wrong("deleting")))?;
    if read != "sluice" {
        return Err(TableError::Invalid(format!("{location}: the warehouse gave back something else than was written")));
    }
    Ok(format!("new tables can be written, read and deleted below {place}"))
}
