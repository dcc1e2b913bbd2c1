//! Questions to data planes that are kept in sync by our own protocol.

use super::fleet;
use gwctl_testkit::{delete, get, put};
use serde_json::json;

#[test]
fn the_log_level_of_each_data_plane_is_read_set_and_put_back() {
    let fleet = fleet(2);
    fleet.in_sync();
    let admin = fleet.cp.admin();
    let paths: Vec<String> = fleet
        .members()
        .iter()
        .map(|member| format!("/clustering/data-planes/{}/log-level", member["id"].as_str().unwrap()))
        .collect();
    let level = |path: &str| get(admin, path).json()["current_level"].clone();
    let own = level(&paths[0]);
    assert_eq!(put(admin, &paths[0], &json!({"current_level": "error", "timeout": 500})).status, 201);
    assert_eq!((level(&paths[0]), level(&paths[1])), (json!("error"), own.clone()));
    let refused = put(admin, &paths[0], &json!({"current_level": "loud"}));
    assert_eq!((refused.status, refused.json()["message"].as_str().unwrap()), (500, "unknown log level: loud"));
    assert_eq!(delete(admin, &paths[0]).status, 204);
    assert_eq!(level(&paths[0]), own);
    let told = format!("puts the log level back level={}", own.as_str().unwrap());
    assert!(fleet.dps.iter().any(|dp| dp.log().contains(&told)), "{told}");
    fleet.in_sync();
}
