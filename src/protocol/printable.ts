/**
 * Makes text from outside safe for a log and a terminal. Replaces control characters with their pictures (`␛`), or with
 * `�` if there is no picture.
 *
 * Otherwise a payload or a close reason could start a new line, move the cursor, set the title, or reverse the text.
 */
export const printable = (text: string): string =>
  text
    .replace(/[\u0000-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replace(/\u007f/g, '␡')
    .replace(/[\u0080-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g, '�');
