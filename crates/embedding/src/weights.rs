//! The tensors of a model's file.

use half::{bf16, f16};
use ndarray::{Array1, Array2};
use safetensors::{Dtype, SafeTensors};

/// The tensors of a file, by name.
pub(crate) struct Weights<'a>(SafeTensors<'a>);

impl<'a> Weights<'a> {
    pub(crate) fn read(file: &'a [u8]) -> Result<Self, String> {
        SafeTensors::deserialize(file)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// A tensor of two dimensions.
    ///
    /// # Errors
    /// It is absent, or of another shape or type.
    pub(crate) fn matrix(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Array2<f32>, String> {
        let (shape, numbers) = self.take(name)?;
        if shape != [rows, columns] {
            return Err(format!(
                "{name} is of shape {shape:?}, and config.json states {:?}",
                [rows, columns]
            ));
        }
        Array2::from_shape_vec((rows, columns), numbers).map_err(|error| format!("{name}: {error}"))
    }

    /// A tensor of one dimension.
    ///
    /// # Errors
    /// As for [`Weights::matrix`].
    pub(crate) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        let (shape, numbers) = self.take(name)?;
        if shape == [length] {
            Ok(numbers.into())
        } else {
            Err(format!(
                "{name} is of shape {shape:?}, and config.json states {:?}",
                [length]
            ))
        }
    }

    /// The first row of a tensor of two dimensions.
    ///
    /// # Errors
    /// As for [`Weights::matrix`].
    pub(crate) fn first_row(&self, name: &str, columns: usize) -> Result<Array1<f32>, String> {
        let (shape, numbers) = self.take(name)?;
        if shape.len() == 2 && shape.last() == Some(&columns) && numbers.len() >= columns {
            Ok(numbers.into_iter().take(columns).collect())
        } else {
            Err(format!(
                "{name} is of shape {shape:?}, and config.json states rows of {columns}"
            ))
        }
    }

    /// The shape of a tensor, and its numbers row by row.
    fn take(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), String> {
        // Some copies of a model name everything below `bert`.
        let found = self
            .0
            .tensor(name)
            .or_else(|_| self.0.tensor(&format!("bert.{name}")));
        let tensor = found.map_err(|_| format!("there is no {name}"))?;
        let numbers = match tensor.dtype() {
            Dtype::F32 => numbers(tensor.data(), f32::from_le_bytes),
            Dtype::F16 => numbers(tensor.data(), |bytes| f16::from_le_bytes(bytes).to_f32()),
            Dtype::BF16 => numbers(tensor.data(), |bytes| bf16::from_le_bytes(bytes).to_f32()),
            other => {
                return Err(format!(
                    "{name} is of type {other}; F32, F16 and BF16 are read"
                ));
            }
        };
        Ok((tensor.shape().to_vec(), numbers))
    }
}

fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|bytes| number(*bytes))
        .collect()
}
