//! What plugins keep of one request between its phases.

use std::any::{Any, TypeId};

/// At most one value of each type. Private types of a plugin are seen by that plugin alone; the row of a plugin that
/// runs is always the only one of its name, so a type needs no further key.
#[derive(Default)]
pub struct Slots(Vec<(TypeId, Box<dyn Any>)>);

impl Slots {
    /// The value, if one was put.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find(|(id, _)| *id == TypeId::of::<T>()).and_then(|(_, value)| value.downcast_ref())
    }

    /// The value, if one was put.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find(|(id, _)| *id == TypeId::of::<T>()).and_then(|(_, value)| value.downcast_mut())
    }

    /// Puts a value in place of the one of the same type.
    pub fn put<T: Any>(&mut self, value: T) {
        match self.get_mut::<T>() {
            Some(slot) => *slot = value,
            None => self.0.push((TypeId::of::<T>(), Box::new(value))),
        }
    }

    /// Takes the value out.
    pub fn take<T: Any>(&mut self) -> Option<T> {
        let index = self.0.iter().position(|(id, _)| *id == TypeId::of::<T>())?;
        self.0.swap_remove(index).1.downcast().ok().map(|value| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_slot() {
        let mut slots = Slots::default();
        slots.put(1_u32);
        slots.put("text".to_owned());
        slots.put(2_u32);
        assert_eq!(slots.get::<u32>(), Some(&2));
        assert_eq!(slots.take::<String>().as_deref(), Some("text"));
        assert_eq!(slots.get::<String>(), None);
    }
}
