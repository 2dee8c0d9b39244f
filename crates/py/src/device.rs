//! A graphics processor that Python drives: kernels and their words go there as bytes.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use routecast_sim::device::{Device, Going, Kernel, Sizes};

/// An object of Python with the methods of [`Device`]; an exception is what the device says.
pub(crate) struct PyDevice {
    object: Py<PyAny>,
    has_u64: bool,
}

impl PyDevice {
    pub(crate) fn new(py: Python<'_>, object: Py<PyAny>) -> PyResult<Self> {
        let has_u64 = object.getattr(py, "has_u64")?.extract(py)?;
        Ok(Self { object, has_u64 })
    }

    fn call<T>(&self, what: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Result<T, String> {
        Python::attach(|py| what(py, &self.object).map_err(|error| error.value(py).to_string()))
    }

    /// Reads so many words of N bytes.
    fn read_all<const N: usize>(
        &self,
        method: &str,
        count: usize,
        mut each: impl FnMut(usize, [u8; N]),
    ) -> Result<(), String> {
        let read = self.call(|py, object| {
            let bytes = object.call_method0(py, method)?;
            let bytes: &[u8] = bytes.extract(py)?;
            let (words, _) = bytes.as_chunks::<N>();
            // A buffer has one word at least.
            words.iter().take(count).enumerate().for_each(|(place, word)| each(place, *word));
            Ok(words.len())
        })?;
        if read == count || count == 0 { Ok(()) } else { Err(format!("it gave {read} words of {count}")) }
    }
}

fn packed<'py>(py: Python<'py>, words: &[u32]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 4 * words.len(), |bytes| {
        bytes.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
        Ok(())
    })
}

impl Device for PyDevice {
    fn has_u64(&self) -> bool {
        self.has_u64
    }

    fn most_lanes(&self, words: usize, memory: usize) -> Result<usize, String> {
        self.call(|py, object| object.call_method1(py, "most_lanes", (words, memory))?.extract(py))
    }

    fn open(&self, kernel: &Kernel, sizes: Sizes) -> Result<(), String> {
        let Sizes { lanes, words, memory, bins, counts } = sizes;
        self.call(|py, object| {
            let (tables, constants) = (packed(py, &kernel.tables)?, packed(py, &kernel.constants)?);
            let sizes = (lanes, words, memory, bins, counts);
            object.call_method1(py, "open", (&kernel.text, tables, constants, sizes)).map(drop)
        })
    }

    fn write(&self, words: &[u32], memory: Option<&[u32]>, stops: &[u32]) -> Result<(), String> {
        self.call(|py, object| {
            let memory = memory.map(|memory| packed(py, memory)).transpose()?;
            object.call_method1(py, "write", (packed(py, words)?, memory, packed(py, stops)?)).map(drop)
        })
    }

    fn step(&self) -> Result<Going, String> {
        let (lanes, stops) = self.call(|py, object| object.call_method0(py, "step")?.extract(py))?;
        Ok(Going { lanes, stops })
    }

    fn read(&self, words: &mut [u32], memory: &mut [u32]) -> Result<(), String> {
        self.read_all("read_words", words.len(), |place, word| words[place] = u32::from_ne_bytes(word))?;
        self.read_all("read_memory", memory.len(), |place, word| memory[place] = u32::from_ne_bytes(word))
    }

    fn read_counts(&self, counts: &mut [u32]) -> Result<(), String> {
        self.read_all("read_counts", counts.len(), |place, word| counts[place] = u32::from_ne_bytes(word))
    }

    fn take_bins(&self, bins: &mut [u64]) -> Result<(), String> {
        self.read_all("take_bins", bins.len(), |place, sum| bins[place] = u64::from_ne_bytes(sum))
    }
}
