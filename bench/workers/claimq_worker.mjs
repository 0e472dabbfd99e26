// Empty handlers of the TypeScript client, for claimq work --serve. CLIENT is its folder, built.
const { task } = await import(`${process.env.CLIENT}/dist/index.js`);
const { handle, serve } = await import(`${process.env.CLIENT}/dist/worker.js`);

await serve([handle(task("bench"), {}, async () => {})], { concurrency: 128 });
