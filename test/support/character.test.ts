import { expect, it } from '@jest/globals';
import { character } from './character.js';

it.each(['\0', 'a', '\ud7ff', '\ue000', '😀', '\u{10ffff}'])('%j is a character', (value) => {
  expect(character.canShrinkWithoutContext(value)).toBe(true);
});

it.each(['', 'ab', '\ud800', '\udfff', 5])('%j is not a character', (value) => {
  expect(character.canShrinkWithoutContext(value)).toBe(false);
});
