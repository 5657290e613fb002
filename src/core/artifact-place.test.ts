import { describe, expect, it } from "vitest";
import { artifactPlace } from "./artifact-place.js";
import { readSettings } from "./settings.js";

describe("ARTIFACTS", () => {
  it.each([
    ["file:.oracle-worker/artifacts", { folder: ".oracle-worker/artifacts" }],
    ["file:/var/lib/artifacts", { folder: "/var/lib/artifacts" }],
    ["file:///var/lib/with space", { folder: "/var/lib/with space" }],
    ["s3://bucket", { bucket: "bucket", prefix: "" }],
    ["s3://my.bucket-1/team/a/", { bucket: "my.bucket-1", prefix: "team/a" }],
  ])("%s is a place", (address, place) => {
    expect(artifactPlace(address)).toEqual(place);
  });

  it.each([
    "",
    "artifacts",
    "file:",
    "file://host/folder",
    "file:a\0b",
    "s3:bucket",
    "s3://",
    "s3://Bucket",
    "s3://b/",
    "s3://bucket//twice",
    "s3://bucket/../up",
    "s3://bucket/a b",
    "s3://bucket/a?b",
    "https://bucket/prefix",
  ])("%j is refused, and the error names the setting", (address) => {
    expect(() => readSettings({ ARTIFACTS: address })).toThrow(
      expect.objectContaining({ code: "INVALID_SETTING", field: "ARTIFACTS" }),
    );
  });
});
