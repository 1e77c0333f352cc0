//! Multiplies two square matrices: `matrix_product SIZE`. Its cost grows with the cube of the size.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a program of its own")]

fn main() {
    let Some(size) = std::env::args().nth(1).and_then(|word| word.parse::<f64>().ok()).map(|size| size as usize) else {
        eprintln!("matrix_product SIZE");
        std::process::exit(2);
    };
    let a: Vec<f64> = (0..size * size).map(|place| (place % 7) as f64).collect();
    let b: Vec<f64> = (0..size * size).map(|place| (place % 5) as f64).collect();
    let mut product = vec![0.0; size * size];
    for i in 0..size {
        for k in 0..size {
            let factor = a[i * size + k];
            for j in 0..size {
                product[i * size + j] += factor * b[k * size + j];
            }
        }
    }
    println!("{}", product.iter().sum::<f64>());
}
