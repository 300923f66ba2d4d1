/** The folders of src that are mutated, the quickest first. Each is tested by the folder of the same name in test. */
export const folders = ['feed', 'protocol', 'operators', 'transport'];

/** Returns the path of the report that Stryker writes for a folder. */
export const reportOf = (folder) => `temp/mutation/${folder}.json`;
